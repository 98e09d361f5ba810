// Where a page has its figures: a document in the page, or a worker that reads the file.

import { type Details, type Item, parse, type Report } from "./data";

export interface Source {
  /** All objects, as far as they were read. Reading fills in their items. */
  readonly report: Report;
  /** Whether values cost no transfer. */
  readonly isCheap?: boolean;
  /** What an object has beside its figures; a promise where it is read first. A long one is read as a whole if asked. */
  details(item: Item, isWhole?: boolean): Details | Promise<Details>;
  /** Reads the values of all objects, which are not here. `progress` gets the number of those that are read. */
  readAll?(progress: (done: number) => void, signal: AbortSignal): Promise<void>;
  /** The last file as another kind. */
  save?(kind: string): Promise<{ blob: Blob; warnings: string[] }>;
  /** Why a histogram or a picture is not there. */
  missing(item: Item, what: string): string;
  /** The last line of the page. */
  readonly footer: string;
}

/** The document that `zt report` writes into the page. It has all that the page shows. */
export function ofDocument(text: string): Source {
  const report = parse(text);
  return {
    report,
    details: ({ at }) => report.details(at),
    missing: (_, what) => `The ${what} is left out to keep the page small; zt report --detail keeps all.`,
    footer: `Made by ${report.program}. This page sends nothing and loads nothing.`,
  };
}
