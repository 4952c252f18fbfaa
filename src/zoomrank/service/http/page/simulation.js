// Simulated visitors of one query. They continue on other pages, so that one can watch the zoom tree.

import { showProblem } from "./messages.js";
import { drawTaste, nearestTaste, visit } from "./tastes.js";

const BEAT = 500; // milliseconds from one batch to the next
const GROUP = 10; // visitors whose feedback is sent together: small groups are learned sooner
const AT_ONCE = 5; // parallel requests; browsers queue more
const RECENT = 100; // visitors in the moving share
const MOST = 600; // points and columns of the pictures

export class Simulation extends EventTarget {
  tastes = [];
  speed = 1;
  running = false;
  busy = false; // until the last feedback is sent
  visitors = 0;
  satisfied = 0;
  recent = [];
  points = [];
  columns = [];
  shown = [];

  constructor(taught) {
    super();
    this.taught = taught; // the learner that is taught
    this.collection = taught.collection;
    this.query = taught.query;
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
    this.waiting ??= await this.taught.rank();
    this.show(this.waiting.documents);
    this.changed();
  }

  /** Returns whether it was learned: it is lost with a copy that has expired. */
  async giveFeedback(clicked) {
    const ranking = this.waiting;
    this.waiting = undefined; // even if this fails: it would fail again
    const [result] = await this.taught.feedback([{ ranking, clicked }]);
    if (result?.error) throw result;
    if (!result) return false;
    this.count(undefined, clicked !== null);
    this.note();
    return true;
  }

  async group(visitors) {
    const { tastes } = this;
    const rankings = await this.rankings(visitors);
    const who = rankings.map(() => drawTaste(tastes));
    const feedback = rankings.map((ranking, index) => ({ ranking, clicked: visit(tastes[who[index]], ranking.documents, this.pathOf) }));
    const results = await this.taught.feedback(feedback);
    results.forEach((result, index) => !result || result.error || this.count(who[index], feedback[index].clicked !== null));
    this.show(rankings.at(-1).documents);
    this.note();
    const refused = results.find((result) => result?.error);
    if (refused) throw refused;
  }

  async rankings(number) {
    const rankings = this.waiting ? [this.waiting] : []; // shown before start was pressed
    this.waiting = undefined;
    let left = number - rankings.length;
    const worker = async () => {
      while (left-- > 0) rankings.push(await this.taught.rank());
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
