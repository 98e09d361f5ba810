/** Opens tensor files of every kind. The types and their documentation are in index.d.ts. */
import { asError, ZtError } from "./errors.js";
import { generation, load, OpenFile, reset } from "./module.js";
import { readerOf } from "./readers.js";
import { Host, Session } from "./session.js";

export { ZtError };

/** One of all files, because a comparison reads two. */
const session = new Session(reset);

/** The arrays for elements of each dtype. A value of a logical type may be several elements. */
const ARRAYS = {
  f64: Float64Array,
  f32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  i64: BigInt64Array,
  i32: Int32Array,
  i16: Int16Array,
  i8: Int8Array,
  u64: BigUint64Array,
  u32: Uint32Array,
  u16: Uint16Array,
  u8: Uint8Array,
  bool: Uint8Array,
};

export async function open(source, options = {}) {
  const { strict, truncated, names, mlDtype = [], limits = {}, logical, base, check = true } = options;
  const asked = {
    strict: Boolean(strict),
    truncated: Boolean(truncated),
    names: names && Array.from(names, String),
    mlDtypes: [mlDtype].flat().map(String),
    limits: Object(limits),
    logical: logical === true ? "" : logical ? String(logical) : undefined,
  };
  await load();
  const hosts = [];
  try {
    for (const one of [source, ...(base === undefined ? [] : [base].flat())]) {
      // The options about names are those of the file itself.
      const of = hosts.length === 0 ? options : { fetch: options.fetch };
      hosts.push(new Host(await readerOf(one, of), session));
    }
    const [host, ...bases] = hosts;
    const engine = await session.run(() => new OpenFile(host, host.name, asked, bases, Boolean(check)));
    return new TensorFile(engine, hosts);
  } catch (error) {
    hosts.forEach((host) => host.close());
    throw error;
  }
}

/** Arguments become text here, because the module does not check their types. */
export class TensorFile {
  #engine;
  #hosts;
  #generation = generation;

  constructor(engine, hosts) {
    [this.#engine, this.#hosts] = [engine, hosts];
    this.kind = engine.kind();
    this.layout = engine.layout();
    this.byteLength = engine.byteLength();
    this.names = engine.names();
  }

  get attributes() {
    return session.now(() => this.#open.attributes());
  }

  get warnings() {
    return session.now(() => this.#open.warnings());
  }

  tensor(name) {
    const call = (work) => session.run(() => work(this.#open));
    const text = String(name);
    return new Tensor(text, session.now(() => this.#open.tensor(text)), call);
  }

  async verify({ strict = false, names } = {}) {
    const some = names && Array.from(names, String);
    const report = await session.run(() => this.#open.verify(strict, some));
    return { ...report, problems: report.problems.map(asError) };
  }

  report({ values = "all", names, before, detail = false } = {}) {
    const asked = [String(values), names && Array.from(names, String), Boolean(detail)];
    return session.run(() => (before ? this.#open.compare(before.#open, ...asked) : this.#open.report(...asked)));
  }

  async convert({ kind, names, dtype, dialect, zstd, planes, dense, dropUnsupported, skipDamaged, allowInf } = {}) {
    let pieces;
    const wanted = {
      kind: String(kind),
      names: names && Array.from(names, String),
      dtype: dtype && String(dtype),
      dialect: dialect && String(dialect),
      zstd: zstd === undefined ? undefined : Number(zstd),
      planes: Boolean(planes),
      dense: Boolean(dense),
      dropUnsupported: Boolean(dropUnsupported),
      skipDamaged: Boolean(skipDamaged),
      allowInf: Boolean(allowInf),
      write: (bytes) => void pieces.push(bytes.slice()),
    };
    const { byteLength, warnings } = await session.run(() => {
      pieces = [];
      return this.#open.convert(wanted);
    });
    const pull = (stream) => (pieces.length > 0 ? stream.enqueue(pieces.shift()) : stream.close());
    return { byteLength, warnings, stream: new ReadableStream({ pull }) };
  }

  close() {
    if (!this.#engine) return;
    if (this.#generation === generation) this.#engine.free();
    this.#engine = undefined;
    this.#hosts.forEach((host) => host.close());
  }

  get #open() {
    if (this.#generation !== generation) {
      throw new ZtError({ message: "a fault of zt has closed the file: open it again", kind: "internal", code: "internal" });
    }
    if (this.#engine) return this.#engine;
    throw new ZtError({ message: "the file is closed", kind: "misuse", code: "misuse" });
  }
}

export class Tensor {
  #call;

  constructor(name, { fault, ...description }, call) {
    Object.assign(this, { name, ...description, fault: fault && asError(fault) });
    this.#call = call;
  }

  async values({ raw = false } = {}) {
    return part(await this.#call((engine) => engine.values(this.name, raw))).data;
  }

  async dense({ raw = false } = {}) {
    return part(await this.#call((engine) => engine.dense(this.name, raw))).data;
  }

  async slice(parts, { raw = false } = {}) {
    if (typeof parts !== "string" && !Array.isArray(parts)) {
      throw new TypeError('slice takes a text such as "0:4,:", or an array of parts');
    }
    const text = Array.isArray(parts) ? parts.map(textOf).join() : parts;
    return part(await this.#call((engine) => engine.slice(this.name, text, raw)));
  }

  async bytes(role = "data") {
    return this.#call((engine) => engine.bytes(this.name, String(role)));
  }
}

/** A part of an index as text: `3`, `0:4`, `:`. */
function textOf(part) {
  if (Array.isArray(part)) return part.map((place) => place ?? "").join(":");
  return part ?? ":";
}

function part({ shape, dtype, stored, bytes }) {
  return { shape, dtype, data: new ARRAYS[stored](bytes.buffer) };
}
