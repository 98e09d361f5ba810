// A source whose values a worker reads when they are wanted.

import { type Details, type Findings, type Item, parse } from "./data";
import type { Source } from "./source";
import { human } from "./text";
import type { Methods, Opened, Place, Traffic } from "./worker";

/** Bytes of an object that are read at once; of a larger one a sample. What is on a disk costs less. */
const [FROM_NETWORK, FROM_DISK] = [2 ** 26, 2 ** 28];
/** Bytes of objects that are read together, and their number. */
const [TOGETHER, OBJECTS] = [2 ** 26, 2000];
/** Bytes of an object that can be read as a whole: a call of the engine may fetch 1 GiB. */
const LONGEST = 2 ** 29;
/** Objects whose histograms and pictures stay in memory. */
const KEPT = 32;

/** Calls of the worker. */
export class Calls {
  traffic: Traffic = { requests: 0, bytes: 0 };
  #worker: Worker;
  #calls = new Map<number, { resolve(result: never): void; reject(error: Error): void }>();
  #last = 0;
  #ended?: Error;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.addEventListener("message", ({ data: { id, result, error, traffic } }) => {
      this.traffic = traffic;
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (error) call?.reject(Object.assign(new Error(error.message), { code: error.code }));
      else call?.resolve(result as never);
    });
    worker.addEventListener("error", () => {
      this.#ended = new Error("the worker has ended: load the page again");
      for (const call of this.#calls.values()) call.reject(this.#ended);
      this.#calls.clear();
    });
  }

  call<Name extends keyof Methods>(method: Name, ...args: Parameters<Methods[Name]>): ReturnType<Methods[Name]> {
    const id = this.#last++;
    if (this.#ended) return Promise.reject(this.#ended) as ReturnType<Methods[Name]>;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#worker.postMessage({ id, method, args });
    }) as ReturnType<Methods[Name]>;
  }
}

/** What was opened at these places. */
export function ofWorker(calls: Calls, { report: text, attributes, opening }: Opened, places: Place[]): Source {
  const report = parse(text);
  const { items, files } = report;
  files.forEach((file, at) => (file.attributes = attributes[at]));
  const isPair = files.length === 2;
  const isCheap = places.every((place) => typeof place !== "string");
  const most = isCheap ? FROM_DISK : FROM_NETWORK;
  const kept = new Map<number, Details>();
  let wanted: Item | undefined;
  let last: Promise<unknown> = Promise.resolve();

  /** Fills in these items. Figures of all values stay, because one object alone is like no other. */
  async function read(some: Item[], values: "all" | "sample", detail: boolean) {
    // The only objects of two files may have two names.
    const names = items.length === 1 ? undefined : some.map(({ name }) => name);
    const found = parse(await calls.call("read", opening, names, values, detail));
    const byName = new Map(some.map((item) => [item.name, item]));
    const places = new Map<Item, number>();
    for (const item of found.items) {
      const ours = names ? byName.get(item.name) : some[0];
      if (ours === undefined) throw new Error("the engine read other objects than those that were asked for");
      places.set(ours, item.at);
      const isKnown = ours.count !== undefined && !ours.isSample;
      if (!isKnown || !(detail || values === "sample")) Object.assign(ours, item, { at: ours.at, isSample: values === "sample" });
    }
    return { found, places };
  }

  async function detailsOf(item: Item, isWhole: boolean): Promise<Details> {
    // Someone who walks through the table wants the last one.
    if (item !== wanted) return {};
    const isLong = item.stored > most && !isWhole;
    const unread = isLong ? item.stored : undefined;
    if (item.stored > LONGEST && isWhole) throw new Error(`more than ${human(LONGEST)}: zt report reads it`);
    // A comparison has no samples.
    if (isLong && isPair) return { unread };
    const { found, places } = await read([item], isLong ? "sample" : "all", true);
    report.isInParts ??= items.length > 1;
    const details = { ...found.details(places.get(item)!), unread };
    kept.delete(item.at);
    kept.set(item.at, details);
    for (const at of kept.keys()) if (kept.size > KEPT) kept.delete(at);
    return details;
  }

  return {
    report,
    isCheap,
    details(item, isWhole = false) {
      const found = kept.get(item.at);
      if (found && !(isWhole && found.unread)) return found;
      wanted = item;
      const reading = last.then(() => detailsOf(item, isWhole));
      last = reading.catch(() => {});
      return reading;
    },
    async readAll(progress, signal) {
      const sums = files.map(() => ({ problems: { count: 0, first: [] } as Findings, unverified: 0, is_verified: true }));
      for (let at = 0; at < items.length && !signal.aborted; ) {
        let [end, bytes] = [at, 0];
        while (end < items.length && end < at + OBJECTS && (end === at || bytes + items[end].stored <= TOGETHER)) {
          bytes += items[end++].stored;
        }
        const some = items.slice(at, end);
        const { found, places } = await read(some, bytes > LONGEST && !isPair ? "sample" : "all", false);
        // What verification found. Of a long object only a sample was read.
        found.files.forEach(({ problems, unverified, is_verified }, which) => {
          const sum = sums[which];
          // Each step repeats the faults of the file itself.
          const first = problems.first.filter(({ message }) => !sum.problems.first.some((known) => known.message === message));
          sum.problems.count += problems.count - problems.first.length + first.length;
          sum.problems.first.push(...first.slice(0, 100 - sum.problems.first.length));
          sum.unverified += unverified;
          sum.is_verified &&= is_verified;
        });
        if (end === items.length) files.forEach((file, which) => Object.assign(file, sums[which]));
        report.isInParts = some.length < items.length;
        // The whole of a small model stays, but for what its document has no room for.
        if (!report.isInParts) {
          for (const [item, place] of places) {
            const details = found.details(place);
            if (details.histogram && (details.picture || item.shape.length < 2)) kept.set(item.at, details);
          }
        }
        at = end;
        progress(at);
      }
    },
    save: (kind) => calls.call("save", opening, kind),
    missing: (item, what) => (item.shape.length > 1 && what === "picture" ? "A picture needs all values." : `There is no ${what}.`),
    footer: `Drawn by ${report.program}. Your files stay in this browser.`,
  };
}
