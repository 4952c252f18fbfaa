/* Feedback from a page: what was on the screen, clicked, bought or disliked, and that the visitor left.
 *
 * Everything known about an impression is stored in localStorage first and then sent, complete each time, until the
 * service confirms it. Sending the same twice does no harm, so a click just before the page closes is not lost: if it
 * is not confirmed, the next page sends it again. docs/how-to/send-feedback-from-pages.md shows a shop that uses it.
 */

const HALF = 0.5, A_LOOK = 1000; // share of an element, or of the screen if it is larger; milliseconds
const AGAIN = [1000, 4000, 15000]; // milliseconds before retries
const NOT_NOW = [401, 403, 408, 429]; // temporary errors; other 4xx are final

export class Client {
  #post; #notes;
  #saying = new Set(); // messages in flight
  #again = new Map(); // retry timers by impression
  #watched = new Set();

  constructor({ url, key, keep = 86400 }) {
    const place = url.replace(/\/+$/, "");
    this.#post = (path, body) => post(`${place}/v1/${path}`, JSON.stringify(body), key);
    this.#notes = new Notes(`zoomrank ${place} `, keep);
    addEventListener("pagehide", () => this.#watched.forEach((impression) => impression.leave()));
    addEventListener("pageshow", (event) => event.persisted && this.flush());
    document.addEventListener("visibilitychange", () => this.flush());
    this.flush();
  }

  /** The impression that `rank` returned, as passed on by your server; if it is null, nothing is watched or sent. */
  impression({ impression, documents }) {
    const ids = impression === null ? [] : documents.map((document) => document.id);
    const change = (how) => impression !== null && this.#change(impression, how);
    return new Impression(ids, change, (watched) => this.#watched.add(watched));
  }

  /** Report a purchase of a document clicked on this page or an earlier one; returns whether that click is known. */
  purchase(id) {
    const clicked = (note) => note.clicked?.find((one) => String(one) === String(id));
    const notes = this.#notes.all().filter((note) => clicked(note) !== undefined);
    const newest = notes.sort((one, other) => other.time - one.time)[0];
    if (newest) this.#change(newest.impression, (note) => add(note, "purchased", clicked(note)));
    return newest !== undefined;
  }

  /** Send what is not confirmed yet; happens automatically when a page is opened, hidden or shown. */
  async flush() {
    await Promise.all(this.#notes.all().map((note) => this.#say(note)));
  }

  #change(name, how) {
    const note = this.#notes.read(name) ?? { impression: name, time: Date.now() };
    const before = JSON.stringify(messageOf(note));
    how(note);
    this.#notes.write(note);
    if (JSON.stringify(messageOf(note)) !== before) this.#say(note);
  }

  async #say(note, attempt = 0) {
    const message = messageOf(note);
    const said = JSON.stringify(message);
    if (message === null || note.said === said || this.#saying.has(said)) return; // nothing new
    clearTimeout(this.#again.get(note.impression));
    this.#saying.add(said);
    const isHeard = await this.#post(...message);
    this.#saying.delete(said);
    const now = this.#notes.read(note.impression) ?? note;
    if (isHeard) {
      this.#notes.write({ ...now, said });
    } else if (attempt < AGAIN.length) {
      const again = () => this.#say(this.#notes.read(note.impression) ?? note, attempt + 1);
      this.#again.set(note.impression, setTimeout(again, AGAIN[attempt]));
    }
  }
}

export class Impression {
  #ids; #change; #remember;
  #clocks = new Map(); // timers of slots on the screen

  constructor(ids, change, remember) {
    [this.#ids, this.#change, this.#remember] = [ids, change, remember];
  }

  /** Watch the documents' elements, in the order of their slots, for visibility and clicks on links. */
  watch(elements) {
    const slots = new Map([...elements].slice(0, this.#ids.length).map((element, slot) => [element, slot]));
    const look = (entry) => this.#look(slots.get(entry.target), isOnScreen(entry));
    const observer = new IntersectionObserver((entries) => entries.forEach(look), { threshold: [0, 0.1, 0.25, HALF] });
    for (const [element, slot] of slots) {
      const clicked = (event) => event.button < 2 && event.target.closest("a[href]") && this.click(this.#ids[slot]);
      element.addEventListener("click", clicked);
      element.addEventListener("auxclick", clicked); // the middle button, which opens a tab
      observer.observe(element);
    }
    this.#remember(this);
  }

  seen(slots = this.#ids.length) {
    this.#change((note) => (note.seen = Math.max(note.seen ?? 0, slots)));
  }

  click(id) {
    this.#about(id, "clicked");
  }

  /** Report a purchase, here or later; it counts as a click, too. */
  purchase(id) {
    this.#about(id, "clicked", "purchased");
  }

  /** Report a dislike; sent with the click, or when the visitor leaves. */
  dislike(id) {
    this.#about(id, "disliked");
  }

  /** Report that the visitor leaves, if anything was seen; automatic on page close for watched impressions. */
  leave() {
    this.#clocks.forEach((clock) => clearInterval(clock));
    this.#clocks.clear();
    this.#change((note) => note.seen && Object.assign(note, { left: true }, this.#looked(note)));
  }

  #about(id, ...kinds) {
    const known = this.#ids.find((one) => String(one) === String(id));
    if (known === undefined && this.#ids.length) throw new RangeError(`Document ${id} was not shown in this impression.`);
    this.#change((note) => {
      kinds.forEach((kind) => add(note, kind, known));
      Object.assign(note, this.#looked(note));
    });
  }

  #looked({ seen }) {
    return seen && seen < this.#ids.length ? { looked: seen } : { looked: undefined }; // all is the default
  }

  #look(slot, isThere) {
    if (!isThere) {
      clearInterval(this.#clocks.get(slot));
      this.#clocks.delete(slot);
    } else if (!this.#clocks.has(slot)) {
      const clock = setInterval(() => {
        if (document.visibilityState !== "visible") return;
        clearInterval(clock);
        this.seen(slot + 1);
      }, A_LOOK);
      this.#clocks.set(slot, clock);
    }
  }
}

/** What is known about impressions, kept for the next page; in memory only if the browser has no storage. */
class Notes {
  #prefix;
  #store;

  constructor(prefix, keep) {
    this.#prefix = prefix;
    try { this.#store = localStorage; } catch { this.#store = {}; }
    const old = this.all().filter((note) => !(note.time > Date.now() - 1000 * keep));
    for (const note of old) delete this.#store[prefix + note.impression];
  }

  all() {
    const keys = Object.keys(this.#store).filter((key) => key.startsWith(this.#prefix));
    return keys.map((key) => JSON.parse(this.#store[key]));
  }

  read = (name) => JSON.parse(this.#store[this.#prefix + name] ?? "null");

  write(note) {
    const text = JSON.stringify(note);
    try { this.#store[this.#prefix + note.impression] = text; } catch { /* full: sent, not remembered */ }
  }
}

/** The message about an impression, as [path, body]; a single click is an id, several are a list. */
function messageOf({ impression, seen, left, clicked, looked, disliked, purchased }) {
  if (!clicked && !left) return seen ? ["seen", { impression }] : null;
  const first = clicked?.length > 1 ? clicked : clicked?.[0] ?? null;
  return ["feedback", { impression, clicked: first, looked_at: looked, disliked, purchased }]; // JSON omits undefined
}

const add = (note, kind, id) => (note[kind] = [...new Set([...(note[kind] ?? []), id])]);
const isOnScreen = ({ intersectionRatio: ratio, intersectionRect: part, rootBounds: screen }) =>
  ratio >= HALF || (screen !== null && part.height >= HALF * screen.height);

/** Send JSON, even if the page closes meanwhile; returns whether it is settled (no retry needed). */
async function post(address, body, key) {
  const type = "application/json";
  if (key === undefined && !("keepalive" in Request.prototype)) { // an old browser; a beacon cannot carry a key
    navigator.sendBeacon(address, new Blob([body], { type }));
    return false; // unconfirmed
  }
  const headers = { "Content-Type": type, ...(key !== undefined && { Authorization: `Bearer ${key}` }) };
  try {
    const { ok, status } = await fetch(address, { method: "POST", keepalive: true, headers, body });
    return ok || (status >= 400 && status < 500 && !NOT_NOW.includes(status));
  } catch {
    return false; // no connection, or the page is closing
  }
}
