// Elements from data. Text only ever becomes text nodes: nothing from the API can become markup.

const SHORT = { test: "data-testid", key: "data-key", says: "aria-label" };

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(SHORT[name] ?? name, value === true ? "" : value);
  }
  element.append(...present(children));
  return element;
}

const present = (children) => children.flat().filter((child) => child !== null && child !== undefined);

export const byId = (id) => document.getElementById(id);
export const link = (text, href, more) => make("a", { href, ...more }, text);
export const button = (text, onclick, more) => make("button", { type: "button", onclick, ...more }, text);
export const quiet = (...text) => make("p", { class: "quiet" }, ...text);
export const title = (text) => make("h1", { tabindex: -1 }, text);
export const labelled = (text, field) => make("label", { class: "field" }, text, field);
export const spread = (...children) => make("div", { class: "spread" }, ...children);
export const panel = (name, ...children) => make("section", { class: "panel" }, make("h2", {}, name), ...children);

/** A link where the address is http(s), plain text otherwise. */
export function documentTitle({ id, title, url }) {
  if (!/^https?:\/\//i.test(url ?? "")) return make("span", { class: "title" }, title || id);
  return link(title || id, url, { class: "title", target: "_blank", rel: "noopener noreferrer", key: id });
}

/** Replaces what is inside; the focus stays with the element of the same data-key. */
export function refill(container, ...children) {
  const active = container.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  container.replaceChildren(...present(children));
  if (active === undefined) return;
  const same = [...container.querySelectorAll("[data-key]")].find((element) => element.dataset.key === active);
  same?.focus({ preventScroll: true });
}

/** Buttons of which one is pressed; options are [value, text]. */
export function choice(label, options, chosen, onchoose, test) {
  const choose = (value) => {
    options.forEach(([other], place) => group.children[place].setAttribute("aria-pressed", other === value));
    onchoose(value);
  };
  const group = make("div", { class: "choice", role: "group", says: label }, options.map(([value, text]) =>
    button(text, () => choose(value), { "aria-pressed": String(value === chosen), test: test && `${test}-${value}` })));
  return group;
}

export function figure(name, value, test, hint) {
  return make("div", { class: "figure", title: hint }, make("dt", {}, name), make("dd", { test }, value));
}

/** A horizontal bar from 0 to 1, with an optional mark. */
export function bar(share, label, mark) {
  const percent = (value) => `${100 * Math.min(1, Math.max(0, value))}%`;
  return make("span", { class: "bar", role: "img", says: label, title: label },
    make("span", { class: "fill", style: { width: percent(share) } }),
    mark === undefined ? null : make("span", { class: "mark", style: { left: percent(mark) } }));
}

/** A bar with its number beside it. */
export const meter = (share, text) => make("span", { class: "meter" }, bar(share, text), make("span", {}, text));

export function table(heads, rows, more) {
  return make("table", more, make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, rows.map((cells) => make("tr", {}, cells.map((cell) => make("td", {}, cell))))));
}

/** A test whether a value has changed since the last time. */
export function changes() {
  let before;
  return (value) => before !== (before = JSON.stringify(value));
}
