// The learner in the playground: a throwaway copy of a query's learner, or the query itself.

import * as api from "./api.js";

const GONE = 404;

const report = ({ ranking, clicked }) => ({ impression: ranking.impression, clicked });

/** A copy on the server. It is made when first needed, and made again when it has expired. */
export class ACopy {
  isReal = false;
  wasGone = false; // the previous copy had expired

  constructor(collection, query) {
    this.collection = collection;
    this.query = query;
  }

  async rank() {
    const ask = async (copy) => ({ ...(await api.rankCopy(copy)), copy });
    try {
      return await this.withCopy(ask);
    } catch (error) {
      if (error.status !== GONE || !this.wasGone) throw error;
      return this.withCopy(ask);
    }
  }

  /** The result of each feedback; undefined for rankings of an expired copy. */
  async feedback(told) {
    const learn = async (copy) => {
      const here = told.filter((one) => one.ranking.copy === copy);
      const { results } = here.length ? await api.feedbackCopy(copy, here.map(report)) : { results: [] };
      return told.map((one) => results[here.indexOf(one)]);
    };
    try {
      return await this.withCopy(learn);
    } catch (error) {
      if (error.status !== GONE || !this.wasGone) throw error;
      return told.map(() => undefined);
    }
  }

  async withCopy(act) {
    const making = (this.making ??= this.make());
    const copy = await making;
    try {
      return await act(copy);
    } catch (error) {
      if (error.status === GONE) this.wasGone = true;
      if (error.status === GONE && this.making === making) this.making = undefined; // unless it was already replaced
      throw error;
    }
  }

  async make() {
    try {
      const { copy, query, impressions } = await api.makeCopy(this.collection, this.query);
      Object.assign(this, { copy, spelt: query, impressions });
      return copy;
    } catch (error) {
      this.making = undefined;
      throw error;
    }
  }
}

export class TheQuery {
  isReal = true;

  constructor(collection, query) {
    this.collection = collection;
    this.query = query;
  }

  rank() {
    return api.rank(this.collection, this.query);
  }

  async feedback(told) {
    return (await api.feedbackBatch(told.map(report))).results;
  }
}
