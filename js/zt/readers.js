/**
 * Files of every origin.
 *
 * A reader has `byteLength`, `name`, and `readSync(offset, out)` or `read(offset, length)`, which is asynchronous.
 * `beside(location)` gives the reader of a file in the same folder, or `undefined`. It is called with relative
 * paths that do not lead upwards. `first` has the first bytes, if they are here.
 */
import { misuse, unreadable, unsupported, ZtError } from "./errors.js";
import { OpenFile } from "./module.js";

/** In node. Bundlers do not see these imports. */
const fs = globalThis.process?.getBuiltinModule?.("node:fs");
const path = globalThis.process?.getBuiltinModule?.("node:path");
const url = globalThis.process?.getBuiltinModule?.("node:url");

/** The first request for a file by URL. Most headers are shorter. */
const FIRST = 2 ** 16;
/** That for a file beside it. A set of hundreds of shards has a short header in each. */
const FIRST_BESIDE = 2 ** 13;

/** The longest answer of a server that ignores ranges: what one array can hold everywhere. */
const LONGEST = 2 ** 31 - 1;

/** The reader of what a user has. */
export async function readerOf(source, options) {
  const isBuffer = source instanceof ArrayBuffer || globalThis.SharedArrayBuffer && source instanceof SharedArrayBuffer;
  if (isBuffer || ArrayBuffer.isView(source)) {
    const { buffer, byteOffset, byteLength } = isBuffer ? { buffer: source } : source;
    let bytes;
    try {
      bytes = new Uint8Array(buffer, byteOffset, byteLength);
    } catch {
      throw misuse(`${options.name ?? "file"}: the buffer is detached: its bytes are elsewhere`);
    }
    return ofBytes(bytes, options);
  }
  if (source instanceof Blob) return ofBlob(source, options);
  if (typeof source !== "string" && !(source instanceof URL)) return ofFolder(source, options);
  const text = String(source);
  if (text === "") throw misuse("the path is empty: give the path or the URL of a file");
  if (!fs) return ofUrl(new URL(text, globalThis.location?.href).href, options);
  if (text.startsWith("file:")) return ofPath(url.fileURLToPath(text));
  // A scheme of one letter is a drive of Windows.
  return /^[a-z][a-z0-9+.-]+:/i.test(text) ? ofUrl(text, options) : ofPath(text);
}

/** The file that opens a folder, which is an array of files or an object of files by their paths. */
function ofFolder(source, options) {
  const files = source?.[Symbol.iterator]
    ? Object.fromEntries(Array.from(source, (file) => [file?.webkitRelativePath?.split("/").slice(1).join("/") || file?.name, file]))
    : source;
  if (!files || typeof files !== "object" || Object.hasOwn(files, "undefined")) {
    throw new TypeError("open takes a Blob, a URL, an ArrayBuffer, a typed array, a path, or named files");
  }
  const name = opens(Object.keys(files));
  // What it names is relative to its folder.
  const home = name.slice(0, name.lastIndexOf("/") + 1);
  const inside = Object.entries(files).filter(([path]) => path.startsWith(home));
  const beside = Object.fromEntries(inside.map(([path, file]) => [path.slice(home.length), file]));
  return readerOf(files[name], { ...options, name, files: { ...options.files, ...beside } });
}

/** The file among these names that opens them: the only index, the first of a numbered set, or the only tensor file. */
function opens(names) {
  const known = new Set(OpenFile.extensions());
  const isTensors = (name) => known.has(name.split(".").at(-1).toLowerCase()) && !name.split("/").at(-1).startsWith(".");
  const found = [
    names.filter((name) => name.endsWith(".metadata")),
    names.filter((name) => name.endsWith(".index.json")),
    names.filter(isTensors),
  ].find((some) => some.length > 0) ?? [];
  const set = found.map((name) => name.match(/^(.*)-\d{5}-of-(\d{5})(\.\w+)$/)?.slice(1).join("/"));
  const isSet = set[0] !== undefined && set.every((it) => it === set[0]);
  if (found.length === 1 || isSet) return found.toSorted()[0];
  if (found.length === 0) throw misuse("the folder has no tensor file");
  throw misuse(`the folder has ${found.length} tensor files: ${found.toSorted().slice(0, 10).join(", ")}; give one of them`);
}

function ofBytes(bytes, { name = "file", files, fetch }) {
  return {
    name,
    byteLength: bytes.length,
    readSync: (offset, out) => {
      // A buffer that is transferred or made shorter has fewer.
      if (bytes.length < offset + out.length) throw unreadable(`${name}: the buffer is detached, or shorter than it was`);
      out.set(bytes.subarray(offset, offset + out.length));
    },
    beside: amongFiles(files, fetch),
  };
}

function ofBlob(blob, { name = blob.name ?? "file", files, fetch }) {
  const read = async (offset, length) => {
    try {
      return new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer());
    } catch (error) {
      throw unreadable(`${name}: ${error.message}`, error);
    }
  };
  return { name, byteLength: blob.size, read, beside: amongFiles(files, fetch) };
}

function amongFiles(files = {}, fetch) {
  return (location) => Object.hasOwn(files, location)
    ? readerOf(files[location], { name: location, files, fetch })
    : undefined;
}

function ofPath(name) {
  const attempt = (work) => {
    try {
      return work();
    } catch (error) {
      throw unreadable(`${name}: ${error.message}`, error);
    }
  };
  if (attempt(() => fs.statSync(name)).isDirectory()) {
    const files = attempt(() => fs.readdirSync(name, { withFileTypes: true }));
    return ofPath(path.join(name, opens(files.filter((file) => !file.isDirectory()).map((file) => file.name))));
  }
  const file = attempt(() => fs.openSync(name));
  const { size } = attempt(() => fs.fstatSync(file));
  return {
    name: name.replaceAll(path.sep, "/"),
    byteLength: size,
    readSync: (offset, out) => attempt(() => {
      for (let done = 0; done < out.length; ) {
        const length = fs.readSync(file, out, done, out.length - done, offset + done);
        if (length === 0) throw new Error("the file was truncated while it was open");
        done += length;
      }
    }),
    beside: (location) => {
      const other = path.join(path.dirname(name), location);
      return isBelow(name, other) ? ofPath(other) : undefined;
    },
    close: () => fs.closeSync(file),
  };
}

/** Whether `other` is a file, and no link leads out of the folder of the file `name`. */
function isBelow(name, other) {
  const stat = fs.statSync(other, { throwIfNoEntry: false });
  if (!stat?.isFile()) return false;
  const real = fs.realpathSync(other);
  // The file itself may be a link, as in a cache of the Hugging Face Hub.
  const homes = [fs.realpathSync(path.dirname(name)), path.dirname(fs.realpathSync(name))];
  return homes.some((home) => real.startsWith(home.endsWith(path.sep) ? home : home + path.sep));
}

async function ofUrl(href, options, most = FIRST) {
  const fetch = options.fetch ?? globalThis.fetch;
  const name = href.split(/[?#]/)[0];
  if (!options.fetch && !/^(https?|blob|data):/.test(href)) {
    throw unsupported(`${name}: JavaScript fetches http and https: give the address of the store on the web`);
  }
  if (/^https?:.*\/$/.test(name)) throw unsupported(`${name}: a folder on a server has no list: give the URL of its index`);
  const request = async (init) => {
    try {
      const response = await fetch(href, init);
      if (!response?.headers) throw new Error("the caller's fetch gave no response");
      return response;
    } catch (error) {
      throw unreadable(`${name}: ${error.message}`, error);
    }
  };
  const range = (start, end) => request({ headers: { Range: `bytes=${start}-${end - 1}` } });
  const body = async (response, limit) => {
    try {
      return await bodyOf(response, limit);
    } catch (error) {
      throw unreadable(`${name}: ${error.message}`, error);
    }
  };
  const expect = (response, isExpected) => {
    if (isExpected) return;
    const error = unreadable(`${name}: HTTP ${response.status} ${response.statusText}`.trimEnd());
    throw Object.assign(error, { status: response.status });
  };
  const beside = async (location) => {
    const steps = location.split("/").map(encodeURIComponent).join("/");
    try {
      return await ofUrl(new URL(steps, href).href, options, FIRST_BESIDE);
    } catch (error) {
      if (error.status === 404) return undefined;
      throw error;
    }
  };

  const response = await range(0, most);
  // The server ignores ranges and sends everything, or the file is empty.
  if (response.status === 200) return { ...ofBytes(await body(response, LONGEST), { name }), beside };
  if (response.status === 416) return { ...ofBytes(new Uint8Array(), { name }), beside };
  expect(response, response.status === 206);
  isAsked(response, 0, most, name);
  const first = await body(response, most);
  let byteLength = rangeOf(response)?.total;
  if (byteLength === undefined) {
    // Without `Access-Control-Expose-Headers`, a page does not see `Content-Range` of another origin.
    const head = await request({ method: "HEAD" });
    expect(head, head.ok);
    byteLength = Number(head.headers.get("Content-Length") ?? NaN);
    if (!Number.isSafeInteger(byteLength)) throw unreadable(`${name}: the server gives no length`);
  }
  const version = versionOf(response);
  const read = async (offset, length) => {
    const response = await range(offset, offset + length);
    const { total = byteLength } = rangeOf(response) ?? {};
    const isChanged = total !== byteLength || versionOf(response) !== version;
    if (isChanged && response.ok) {
      const message = `${name}: was replaced while it was read: open it again`;
      throw new ZtError({ message, kind: "io", code: "changed" });
    }
    expect(response, response.status === 206);
    isAsked(response, offset, offset + length, name);
    return body(response, length);
  };
  return { name, byteLength, read, beside, first: first.subarray(0, byteLength) };
}

/** `Content-Range: bytes 0-9/100`; `undefined` where a page does not see it, or the total is unknown. */
function rangeOf(response) {
  const found = response.headers.get("Content-Range")?.match(/^bytes (\d+)-(\d+)\/(\d+)$/);
  return found && { start: Number(found[1]), end: Number(found[2]) + 1, total: Number(found[3]) };
}

/** Refuses an answer with other bytes than the asked ones. It may end with the file. */
function isAsked(response, start, end, name) {
  const found = rangeOf(response);
  if (found && (found.start !== start || found.end !== Math.min(end, found.total))) {
    throw unreadable(`${name}: asked for bytes ${start} to ${end}, got ${found.start} to ${found.end}`);
  }
}

/** What changes with the file. A file that has no tag has the time of its last change. */
function versionOf(response) {
  return response.headers.get("ETag") ?? response.headers.get("Last-Modified");
}

/** The bytes of an answer. More than `limit` are an error, and are not waited for. */
async function bodyOf(response, limit) {
  const chunks = [];
  let length = 0;
  const reader = response.body?.getReader();
  for (;;) {
    const { done, value } = await (reader?.read() ?? { done: true });
    if (done) break;
    chunks.push(value);
    length += value.length;
    if (length > limit) {
      await reader.cancel();
      throw new Error(`the server sends more than the ${limit} bytes that were asked for`);
    }
  }
  const bytes = new Uint8Array(length);
  for (const chunk of chunks.reverse()) bytes.set(chunk, length -= chunk.length);
  return bytes;
}
