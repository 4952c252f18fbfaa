// The HTTP API. Addresses are relative, so that the page also works below a path of a proxy.

const KEY = "zoomrank-key";

export const storedKey = () => sessionStorage.getItem(KEY);
export const storeKey = (key) => sessionStorage.setItem(KEY, key);

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
    this.wantsKey = status === 401 || status === 403;
  }
}

async function call(path, signal, body, method) {
  const headers = { Accept: "application/json" };
  if (storedKey()) headers.Authorization = `Bearer ${storedKey()}`;
  const request = { headers, signal, cache: "no-store" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(request, { method: "POST", body: JSON.stringify(body) });
  }
  if (method !== undefined) request.method = method;
  const response = await fetch(`v1/${path}`, request).catch((error) => {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "The service does not respond. Check that it is running, then try again.");
  });
  const content = await response.json().catch(() => null);
  if (response.ok && content !== null) return content;
  throw new ApiError(response.status, content?.message ?? `The service responded with ${response.status} and no explanation. See its log.`);
}

const within = (name, rest) => `collections/${encodeURIComponent(name)}/${rest}`;
const copied = (copy) => (copy === undefined ? {} : { copy });
const asking = (parameters) => `?${new URLSearchParams(parameters)}`;

export const role = (signal) => call("role", signal);
export const replicas = (signal) => call("replicas", signal);
export const collections = (signal) => call("collections", signal);
export const collection = (name, signal) => call(`collections/${encodeURIComponent(name)}`, signal);
export const queries = (name, parameters, signal) => call(within(name, "queries") + asking(parameters), signal);
export const documents = (name, parameters, signal) => call(within(name, "documents") + asking(parameters), signal);
export const document = (name, id, signal) => call(within(name, `documents/${encodeURIComponent(id)}`), signal);
export const query = (name, query, copy, signal) => call(within(name, "query") + asking({ query, ...copied(copy) }), signal);
export const curve = (name, query, signal) => call(within(name, "query/curve") + asking({ query }), signal);
export const tree = (name, query, limit, copy, signal) => call(within(name, "tree") + asking({ query, limit, ...copied(copy) }), signal);
export const remake = (name) => call(within(name, "remake"), undefined, {});
export const rank = (name, query) => call(within(name, "rank"), undefined, { query });
export const feedbackBatch = (feedback) => call("feedback/batch", undefined, { feedback });
export const makeCopy = (name, query) => call(within(name, "copies"), undefined, { query });
export const rankCopy = (copy) => call(`copies/${encodeURIComponent(copy)}/rank`, undefined, {});
export const feedbackCopy = (copy, feedback) => call(`copies/${encodeURIComponent(copy)}/feedback`, undefined, { feedback });

const ofExperiment = (name, experiment, rest = "") => within(name, `experiments/${encodeURIComponent(experiment)}${rest}`);
export const experiments = (name, signal) => call(within(name, "experiments"), signal);
export const experiment = (name, experiment, signal) => call(ofExperiment(name, experiment), signal);
export const beginExperiment = (name, body) => call(within(name, "experiments"), undefined, body);
export const stopExperiment = (name, experiment, arm) => call(ofExperiment(name, experiment, "/stop"), undefined, { arm });
export const promoteArm = (name, experiment, arm) => call(ofExperiment(name, experiment, "/promote"), undefined, { arm });
export const removeExperiment = (name, experiment) => call(ofExperiment(name, experiment), undefined, undefined, "DELETE");

/** Activity of one collection, or of all of them where no name is given. */
export function activity(name, seconds, points, signal) {
  return call((name === undefined ? "activity" : within(name, "activity")) + asking({ seconds, points }), signal);
}
