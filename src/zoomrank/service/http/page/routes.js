// Routes in the URL's fragment. Names and queries are free text: every part is encoded.

const part = encodeURIComponent;

export const collectionRoute = (name) => `#/c/${part(name)}`;
export const queryRoute = (name, query, copy) => `#/c/${part(name)}/q/${part(query)}${copy === undefined ? "" : `/copy/${part(copy)}`}`;
export const playRoute = (name, query) => `#/c/${part(name)}/play${query === undefined ? "" : `/${part(query)}`}`;

export const documentsRoute = (name) => `#/c/${part(name)}/documents`;
export const documentRoute = (name, id) => `#/c/${part(name)}/d/${part(id)}`;

export const experimentsRoute = (name) => `#/c/${part(name)}/experiments`;
export const experimentRoute = (name, experiment) => `${experimentsRoute(name)}/${part(experiment)}`;

/** The collection, experiment and arm in the name of an arm; names of collections contain no ~. */
export function armOf(name) {
  const [home, experiment, arm] = (name ?? "").split("~");
  return arm === undefined ? undefined : { home, experiment, arm };
}

export function readRoute(hash) {
  try {
    const [, start, collection, page, query, , copy] = hash.split("/").map(decodeURIComponent);
    if (start !== "c" || !collection) return { page: "overview" };
    if (page === "q" && query) return { page: "query", collection, query, copy };
    if (page === "documents") return { page, collection };
    if (page === "experiments") return query ? { page: "experiment", collection, experiment: query } : { page, collection };
    if (page === "d" && query !== undefined) return { page: "document", collection, document: query };
    return { page: page === "play" ? "playground" : "overview", collection, query };
  } catch {
    return { page: "overview" }; // an invalid % sequence
  }
}
