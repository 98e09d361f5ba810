// A source whose values a worker reads when they are wanted.

import { type Details, type Item, parse } from "./data";
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
      const error = new Error("the worker has ended: load the page again");
      for (const call of this.#calls.values()) call.reject(error);
    });
  }

  call<Name extends keyof Methods>(method: Name, ...args: Parameters<Methods[Name]>): ReturnType<Methods[Name]> {
    const id = this.#last++;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#worker.postMessage({ id, method, args });
    }) as ReturnType<Methods[Name]>;
  }
}

/** What was opened at these places. */
export function ofWorker(calls: Calls, { report: text, attributes }: Opened, places: Place[]): Source {
  const report = parse(text);
  const { items, files } = report;
  files.forEach((file, at) => (file.attributes = attributes[at]));
  const isPair = files.length === 2;
  const isCheap = places.every((place) => typeof place !== "string");
  const most = isCheap ? FROM_DISK : FROM_NETWORK;
  const kept = new Map<number, Details>();
  let wanted: Item | undefined;
  let last: Promise<unknown> = Promise.resolve();

  /** Fills in these items. */
  async function read(some: Item[], values: "all" | "sample", detail: boolean) {
    // The only objects of two files may have two names.
    const names = items.length === 1 ? undefined : some.map(({ name }) => name);
    const found = parse(await calls.call("read", names, values, detail));
    const byName = new Map(some.map((item) => [item.name, item]));
    const places = new Map<Item, number>();
    for (const item of found.items) {
      const ours = names ? byName.get(item.name) : some[0];
      if (ours === undefined) continue;
      places.set(ours, item.at);
      Object.assign(ours, item, { at: ours.at });
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
    const details = { ...found.details(places.get(item)!), unread };
    kept.delete(item.at);
    kept.set(item.at, details);
    for (const at of kept.keys()) if (kept.size > KEPT) kept.delete(at);
    return details;
  }

  return {
    report,
    isLazy: true,
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
      for (let at = 0; at < items.length && !signal.aborted; ) {
        let [end, bytes] = [at, 0];
        while (end < items.length && end < at + OBJECTS && (end === at || bytes + items[end].stored <= TOGETHER)) {
          bytes += items[end++].stored;
        }
        const some = items.slice(at, end);
        const { found, places } = await read(some, bytes > LONGEST && !isPair ? "sample" : "all", false);
        // What verification found.
        files.forEach((file, which) => {
          const { problems, unverified } = found.files[which];
          if (at === 0) file.problems = { count: 0, first: [] };
          file.problems.count += problems.count;
          file.problems.first.push(...problems.first.slice(0, 100 - file.problems.first.length));
          file.unverified += unverified;
          file.is_verified = end === items.length;
        });
        // The whole of a small model stays.
        if (items.length === some.length) places.forEach((place, { at }) => kept.set(at, found.details(place)));
        at = end;
        progress(at);
      }
    },
    save: (kind) => calls.call("save", kind),
    missing: (item, what) => (item.shape.length > 1 && what === "picture" ? "A picture needs all values." : `There is no ${what}.`),
    footer: `Drawn by ${report.program}. Your files stay in this browser.`,
  };
}
