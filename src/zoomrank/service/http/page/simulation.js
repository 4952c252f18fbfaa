// Visitors of one query. They go on when the playground is left, to watch the zoom tree.

import * as api from "./api.js";
import { showProblem } from "./messages.js";
import { drawTaste, nearestTaste, visit } from "./tastes.js";

const BEAT = 500; // milliseconds from one batch to the next
const GROUP = 10; // visitors whose feedback is sent together: the fewer, the sooner is learned
const AT_ONCE = 5; // requests; browsers hold back more
const RECENT = 100; // visitors in the moving share
const MOST = 600; // points and columns of the pictures

export class Simulation extends EventTarget {
  tastes = [];
  speed = 1;
  running = false;
  busy = false; // until the last feedback is in
  visitors = 0;
  satisfied = 0;
  recent = [];
  points = [];
  columns = [];
  shown = [];

  constructor(collection, query) {
    super();
    this.collection = collection;
    this.query = query;
  }

  pathOf = (item) => item.path;

  changed() {
    this.dispatchEvent(new Event("change"));
  }

  async start() {
    this.running = true;
    if (this.busy) return;
    this.busy = true;
    while (this.running) {
      this.changed();
      const next = new Promise((resolve) => setTimeout(resolve, BEAT));
      try {
        for (let left = this.speed; left > 0 && this.running; left -= GROUP) await this.group(Math.min(left, GROUP));
      } catch (error) {
        this.running = false;
        showProblem(error);
      }
      this.changed();
      if (this.running) await next;
    }
    this.busy = false;
    this.changed();
  }

  pause() {
    this.running = false;
    this.changed();
  }

  /** A ranking for a person, kept until it has feedback. */
  async ask() {
    this.waiting ??= await api.rank(this.collection, this.query);
    this.show(this.waiting.documents);
    this.changed();
  }

  async giveFeedback(clicked) {
    const { impression } = this.waiting;
    this.waiting = undefined; // also if this fails: it would fail again
    await api.feedback(impression, clicked);
    this.count(undefined, clicked !== null);
    this.note();
  }

  async group(visitors) {
    const { tastes } = this;
    const rankings = await this.rankings(visitors);
    const who = rankings.map(() => drawTaste(tastes));
    const feedback = rankings.map(({ impression, documents }, index) => ({ impression, clicked: visit(tastes[who[index]], documents, this.pathOf) }));
    const { results } = await api.feedbackBatch(feedback);
    results.forEach(({ error }, index) => error || this.count(who[index], feedback[index].clicked !== null));
    this.show(rankings.at(-1).documents);
    this.note();
    const refused = results.find(({ error }) => error);
    if (refused) throw refused;
  }

  async rankings(number) {
    const rankings = this.waiting ? [this.waiting] : []; // left by whoever pressed start
    this.waiting = undefined;
    let left = number - rankings.length;
    const worker = async () => {
      while (left-- > 0) rankings.push(await api.rank(this.collection, this.query));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return rankings;
  }

  count(taste, satisfied) {
    this.visitors++;
    if (satisfied) this.satisfied++;
    this.recent.push({ taste, satisfied });
    if (this.recent.length > RECENT) this.recent.shift();
  }

  /** The satisfied share of recent visitors, of one taste or of all. */
  recentShare(taste) {
    const who = this.recent.filter((visitor) => taste === undefined || visitor.taste === taste);
    return who.length ? who.filter((visitor) => visitor.satisfied).length / who.length : null;
  }

  note() {
    this.points.push({ visitors: this.visitors, all: this.recentShare(), each: this.tastes.map((_, taste) => this.recentShare(taste)) });
    if (this.points.length > MOST) this.points = this.points.filter((_, index) => index % 2);
  }

  show(documents) {
    this.shown = documents;
    this.columns.push(documents.map((item) => nearestTaste(this.tastes, this.pathOf(item))));
    if (this.columns.length > MOST) this.columns.shift();
  }
}
