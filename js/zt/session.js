/**
 * Calls of the engine, which is synchronous, over bytes that are fetched.
 *
 * A call reads from `Host`s. If bytes are missing, their ranges are noted, the call fails, and its result is
 * dropped. Then the bytes are fetched, and the call is made again. Each round adds bytes, and an operation may
 * fetch at most `MOST`, so it ends.
 */
import { asError, unreadable, ZtError } from "./errors.js";
import { Parts } from "./parts.js";

/** The bytes that one operation may fetch. */
const MOST = 2 ** 30;
/** Announced bytes that are fetched in one round. */
const AHEAD = 2 ** 28;
/** The shortest request. A round trip takes as long as the transfer of so many bytes. */
const LEAST = 2 ** 16;
/** If reading goes on where the last request ended, the next one is twice as long, up to this. */
const LONGEST = 2 ** 23;
/** Ranges with fewer bytes between them are one request. */
const APART = 2 ** 15;
/** Requests at the same time. Browsers allow six to a server. */
const REQUESTS = 6;
/**
 * Smaller parts stay in memory, because headers are read again and again: the last `KEPT` bytes of them, and the last
 * `KEPT_BESIDE` of each file beside. A set has hundreds.
 */
const SMALL = 2 ** 18;
const KEPT = 2 ** 24;
const KEPT_BESIDE = 2 ** 20;

/** A file as the engine sees it. */
export class Host {
  #session;
  #files = new Map();
  #kept = [];
  #keptLength = 0;
  #last = { start: 0, end: 0 };
  #least = LEAST;
  #most;

  constructor(reader, session, most = KEPT) {
    this.reader = reader;
    this.#session = session;
    this.#most = most;
    this.parts = new Parts();
    if (reader.first) {
      this.keep(this.parts.add(0, reader.first));
      this.#last = { start: 0, end: reader.first.length };
      // A shard of many goes on as it began.
      this.#least = Math.min(LEAST, reader.first.length);
    }
  }

  get name() {
    return String(this.reader.name);
  }

  get byteLength() {
    return this.reader.byteLength;
  }

  get isRemote() {
    return !this.reader.readSync;
  }

  read(offset, out) {
    const { operation } = this.#session;
    try {
      if (!this.reader.readSync) {
        return this.parts.read(offset, out, (start, end) => operation.miss(this, start, end));
      }
      this.reader.readSync(offset, out);
      return true;
    } catch (error) {
      operation.failure ??= error;
      return false;
    }
  }

  willRead(offset, length) {
    if (this.isRemote) this.#session.operation.announce(this, offset, offset + length);
  }

  beside(location) {
    if (!this.#files.has(location)) this.#session.operation.seek(this, location);
    return this.#files.get(location);
  }

  copy(bytes) {
    return bytes.slice();
  }

  /** Closes the file, and those beside it that were opened. */
  close() {
    this.reader.close?.();
    for (const host of this.#files.values()) host?.close();
  }

  /** Opens the file at `location`, if it is there. */
  async find(location) {
    const reader = await this.reader.beside?.(location);
    this.#files.set(location, reader && new Host(reader, this.#session, KEPT_BESIDE));
  }

  /** The ranges to request for those that are missing. */
  plan(missing) {
    const ranges = missing.map(({ start, end, isAnnounced }) => {
      if (isAnnounced) return { start, end };
      const last = this.#last;
      const twice = start === last.end ? Math.min(2 * (last.end - last.start), LONGEST) : 0;
      end = Math.min(Math.max(end, start + Math.max(this.#least, twice)), this.byteLength);
      return (this.#last = { start, end });
    });
    ranges.sort((one, other) => one.start - other.start);
    const joined = [];
    for (const range of ranges) {
      const before = joined.at(-1);
      if (before && range.start - before.end < APART) before.end = Math.max(before.end, range.end);
      else joined.push({ ...range });
    }
    return joined.flatMap(({ start, end }) => this.parts.gaps(start, end));
  }

  /** Keeps the small ones of these parts until there are newer ones. Drops the others. */
  keep(parts) {
    for (const part of parts) {
      if (part.bytes.length >= SMALL) {
        this.parts.remove(part);
        continue;
      }
      this.#kept.push(part);
      this.#keptLength += part.bytes.length;
    }
    while (this.#keptLength > this.#most) {
      const oldest = this.#kept.shift();
      this.#keptLength -= oldest.bytes.length;
      this.parts.remove(oldest);
    }
  }
}

/** What one operation misses, and what it has fetched. */
class Operation {
  failure;
  #missing = new Map();
  #announced = new Map();
  #sought = [];
  #fetched = new Map();
  #fetchedLength = 0;

  get isComplete() {
    return this.#missing.size === 0 && this.#sought.length === 0;
  }

  miss(host, start, end) {
    list(this.#missing, host).push({ start, end });
  }

  announce(host, start, end) {
    list(this.#announced, host).push({ start, end, isAnnounced: true });
  }

  seek(host, location) {
    this.#sought.push({ host, location });
  }

  /** Forgets what the last call has announced. */
  begin() {
    this.#announced.clear();
  }

  /** Fetches what the last call missed. */
  async fetch() {
    const sought = this.#sought.map(({ host, location }) => () => host.find(location));
    const requests = [...this.#missing].flatMap(([host, missing]) => this.#requests(host, missing));
    this.#sought = [];
    this.#missing.clear();
    await inTurn([...sought, ...requests]);
  }

  #requests(host, missing) {
    const announced = [];
    let length = 0;
    for (const range of list(this.#announced, host)) {
      length += range.end - range.start;
      if (length > AHEAD) break;
      announced.push(range);
    }
    // Announced ranges come whole, with what is missing within them.
    const isCovered = ({ start, end }) => announced.some((range) => range.start <= start && end <= range.end);
    const ranges = host.plan([...announced, ...missing.filter((range) => !isCovered(range))]);
    for (const { start, end } of ranges) this.#fetchedLength += end - start;
    if (this.#fetchedLength > MOST) {
      throw new ZtError({
        message: `${host.reader.name}: the call needs more than 1 GiB: read or verify the tensors one by one, or in slices`,
        kind: "limit",
        code: "allocation",
      });
    }
    return ranges.map(({ start, end }) => async () => {
      const bytes = await host.reader.read(start, end - start);
      if (bytes.length !== end - start) {
        throw unreadable(`${host.reader.name}: ${bytes.length} bytes came instead of ${end - start}`);
      }
      list(this.#fetched, host).push(...host.parts.add(start, bytes));
    });
  }

  end() {
    for (const [host, parts] of this.#fetched) host.keep(parts);
  }
}

function list(map, key) {
  if (!map.has(key)) map.set(key, []);
  return map.get(key);
}

/** Does all of `work`, some of it at the same time. */
async function inTurn(work) {
  const next = work.values();
  const worker = async () => {
    for (const item of next) await item();
  };
  await Promise.all(Array.from({ length: REQUESTS }, worker));
}

/** Whether the module has ended: by a panic, or because its stack is full. */
function isTrap(failure) {
  return failure instanceof WebAssembly.RuntimeError || failure instanceof RangeError;
}

/** The calls on one open file. */
export class Session {
  operation;
  #reset;

  /** `reset` begins a new module after a trap. */
  constructor(reset) {
    this.#reset = reset;
  }

  /** The result of `call`, which may read bytes that are fetched first. */
  async run(call) {
    const operation = new Operation();
    try {
      for (;;) {
        const { isDone, result } = this.#attempt(operation, call);
        if (isDone) return result;
        await operation.fetch();
      }
    } finally {
      operation.end();
    }
  }

  /** The result of `call`, which reads only bytes that are here. */
  now(call) {
    const { isDone, result } = this.#attempt(new Operation(), call);
    if (!isDone) throw unreadable("bytes of the file are missing");
    return result;
  }

  #attempt(operation, call) {
    let result;
    let failure;
    operation.begin();
    this.operation = operation;
    try {
      result = call();
    } catch (thrown) {
      failure = asError(thrown);
    }
    this.operation = undefined;
    if (isTrap(failure)) {
      this.#reset();
      throw new ZtError({ message: `a fault of zt: ${failure.message}`, kind: "internal", code: "internal" }, { cause: failure });
    }
    if (operation.failure) throw operation.failure;
    if (failure && operation.isComplete) throw failure;
    if (operation.isComplete) return { isDone: true, result };
    result?.free?.();
    return { isDone: false };
  }
}
