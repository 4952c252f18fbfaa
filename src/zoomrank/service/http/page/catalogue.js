// The paths of a collection's documents, and its categories.

import * as api from "./api.js";

const PAGE = 1000;
const MOST_REQUESTS = 40;
const MOST_CATEGORIES = 250; // that a menu can hold
const catalogues = new Map();

/** Read once per tab. Of very many documents, pages spread evenly over all are read. */
export async function catalogueOf(name, signal) {
  if (catalogues.has(name)) return catalogues.get(name);
  const paths = new Map();
  const read = async (offset, limit) => {
    const { documents, total } = await api.documents(name, { offset, limit }, signal);
    for (const { id, path } of documents) paths.set(id, path ?? []);
    return total;
  };
  const total = await read(0, PAGE);
  const size = Math.max(1, paths.size); // a response may have fewer than requested
  const pages = Math.ceil(total / size);
  const stride = Math.max(1, pages / MOST_REQUESTS);
  for (let page = stride; page < pages; page += stride) await read(Math.floor(page) * size, size);
  const catalogue = { paths, total, categories: categoriesOf(paths) };
  catalogues.set(name, catalogue);
  return catalogue;
}

function categoriesOf(paths) {
  const found = new Map();
  for (const path of paths.values()) {
    for (let depth = 1; depth <= path.length; depth++) {
      const key = path.slice(0, depth).join("\n");
      const category = found.get(key) ?? { key, path: path.slice(0, depth), documents: 0 };
      category.documents++;
      found.set(key, category);
    }
  }
  return [...found.values()].filter((category) => category.documents < paths.size)
    .sort((a, b) => a.path.length - b.path.length || b.documents - a.documents).slice(0, MOST_CATEGORIES)
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}
