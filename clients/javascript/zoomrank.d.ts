/** The id of a document in its collection: a string or an integer. */
export type DocumentId = string | number;

/** What `POST /v1/collections/NAME/rank` returns, as passed on by your server. */
export interface Ranked {
  /** Null where nothing could be shown; then no feedback is sent. */
  impression: string | null;
  /** In the order of the slots. */
  documents: readonly { readonly id: DocumentId }[];
}

export interface Options {
  /** Base URL of `/v1/feedback` and `/v1/seen`: the service, or a path of your own server that forwards them. */
  url: string;
  /** A key with the role `feedback` only: every visitor of the page can read it. */
  key?: string;
  /** Seconds for which impressions are remembered, so that a later page can report purchases; default: a day. */
  keep?: number;
}

/** Sends feedback to a service, or to your own server that forwards it. */
export declare class Client {
  constructor(options: Options);
  /** The impression that `rank` returned; if it is null, the methods of the result do nothing. */
  impression(ranked: Ranked): Impression;
  /** Report a purchase of a document clicked on this page or an earlier one; returns whether that click is known. */
  purchase(id: DocumentId): boolean;
  /** Send what is not confirmed yet; happens automatically when a page is opened, hidden or shown. */
  flush(): Promise<void>;
}

/** One ranking shown to a visitor; made by `Client.impression`. */
export declare class Impression {
  private constructor();
  /** Watch the documents' elements, in the order of their slots, for visibility and clicks on links. */
  watch(elements: Iterable<Element>): void;
  /** Report that this many slots from the top were on the screen; default: all. */
  seen(slots?: number): void;
  /** Report a click. */
  click(id: DocumentId): void;
  /** Report a purchase, here or later; it counts as a click, too. */
  purchase(id: DocumentId): void;
  /** Report a dislike; sent with the click, or when the visitor leaves. */
  dislike(id: DocumentId): void;
  /** Report that the visitor leaves, if anything was seen; automatic on page close for watched impressions. */
  leave(): void;
}
