/** The id of a document, as the collection has it: a text or a whole number. */
export type DocumentId = string | number;

/** What `POST /v1/collections/NAME/rank` returns, as your server hands it on to the page. */
export interface Ranked {
  /** Null where nothing could be shown: then there is nothing to say of it either. */
  impression: string | null;
  /** In the order of the slots. */
  documents: readonly { readonly id: DocumentId }[];
}

export interface Options {
  /** Where `/v1/feedback` and `/v1/seen` are: the service, or a path of your own server that hands them on. */
  url: string;
  /** A key that may give feedback and nothing else: whoever opens the page can read it. */
  key?: string;
  /** Seconds for which impressions are remembered, so that a later page can say what was bought; a day unless told. */
  keep?: number;
}

/** Speaks to a service, or to a server of your own that hands on what it hears. */
export declare class Client {
  constructor(options: Options);
  /** The impression that `rank` returned; if it is null, all that is done with what this returns does nothing. */
  impression(ranked: Ranked): Impression;
  /** A document was bought that was clicked on this page or an earlier one; says whether that click is remembered. */
  purchase(id: DocumentId): boolean;
  /** Say again what nobody is known to have heard; done by itself when a page comes, and when it goes. */
  flush(): Promise<void>;
}

/** One ranking that somebody sees; made by `Client.impression`. */
export declare class Impression {
  private constructor();
  /** Watch the elements of the documents, in the order of their slots: whether they are seen, and clicks on links. */
  watch(elements: Iterable<Element>): void;
  /** So many slots from the top were on the screen; all, unless told. */
  seen(slots?: number): void;
  /** She clicked on it. */
  click(id: DocumentId): void;
  /** She bought it, here or later; what is bought counts as clicked. */
  purchase(id: DocumentId): void;
  /** She does not want it; said with her click, or when she leaves. */
  dislike(id: DocumentId): void;
  /** She leaves, if she has seen it at all; done by itself when the page goes, of what is watched. */
  leave(): void;
}
