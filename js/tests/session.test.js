/** What is requested for reads of an engine that is synchronous. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Parts } from "./node_modules/zt-tensor/parts.js";
import { Host, Session } from "./node_modules/zt-tensor/session.js";

const KIB = 2 ** 10;
const MIB = 2 ** 20;

/** A file whose byte at each offset follows from it, and the requests for it. */
function remote(byteLength) {
  const requests = [];
  const read = async (offset, length) => {
    requests.push([offset, length]);
    return Uint8Array.from({ length }, (_, at) => byteAt(offset + at));
  };
  const session = new Session();
  const host = new Host({ name: "model", byteLength, read }, session);
  return { host, session, requests };
}

const byteAt = (offset) => (offset * 7 + (offset >> 8)) & 255;

/** A call that reads like the engine: it stops at the first read that fails. */
function reads(host, ranges) {
  return () => ranges.map(([offset, length]) => {
    const out = new Uint8Array(length);
    if (!host.read(offset, out)) throw { message: "the bytes are not here" };
    assert.ok(out.every((byte, at) => byte === byteAt(offset + at)));
    return length;
  });
}

test("reads in many places give the bytes of the file", async () => {
  const { host, session, requests } = remote(2 * MIB);
  let seed = 1;
  const random = (below) => (seed = (seed * 48271) % 0x7fffffff) % below;
  const ranges = Array.from({ length: 60 }, () => [random(MIB), random(300 * KIB)]);
  for (let at = 0; at < 60; at += 6) await session.run(reads(host, ranges.slice(at, at + 6)));
  assert.ok(requests.length > 10);
  for (const [offset, length] of requests) assert.ok(offset + length <= 2 * MIB && length > 0);
});

test("an announced range is one request of its length", async () => {
  const { host, session, requests } = remote(10 * MIB);
  await session.run(() => {
    host.willRead(MIB, 3 * MIB);
    return reads(host, [[MIB, MIB], [2 * MIB, MIB], [3 * MIB, MIB]])();
  });
  assert.deepEqual(requests, [[MIB, 3 * MIB]]);
});

test("announcements without a missing byte request nothing", async () => {
  const { host, session, requests } = remote(MIB);
  await session.run(() => host.willRead(0, MIB));
  assert.deepEqual(requests, []);
});

test("a header of unknown length takes requests that double", async () => {
  const { host, session, requests } = remote(4 * MIB);
  await session.run(reads(host, Array.from({ length: 250 }, (_, at) => [at * 4 * KIB, 4 * KIB])));
  assert.deepEqual(requests.map(([, length]) => length / KIB), [64, 128, 256, 512, 1024]);
});

test("small parts stay, large ones are fetched again", async () => {
  const { host, session, requests } = remote(4 * MIB);
  const twice = async (ranges) => {
    await session.run(reads(host, ranges));
    await session.run(reads(host, ranges));
  };
  await twice([[0, 100]]);
  assert.deepEqual(requests, [[0, 64 * KIB]]);
  await twice([[MIB, MIB]]);
  assert.deepEqual(requests.slice(1), [[MIB, MIB], [MIB, MIB]]);
});

test("operations at the same time", async () => {
  const { host, session } = remote(8 * MIB);
  const one = (at) => session.run(reads(host, [[at * 500 * KIB, MIB], [at * 100 * KIB, 10 * KIB]]));
  await Promise.all(Array.from({ length: 12 }, (_, at) => one(at)));
});

test("an operation that needs more than 1 GiB ends", async () => {
  const { host, session, requests } = remote(2 ** 32);
  const call = () => {
    host.willRead(0, 2 ** 20);
    for (let at = 0; at < 2 ** 32; at += 2 ** 28) host.willRead(at, 2 ** 28);
    if (!host.parts.read(2 ** 31, new Uint8Array(1), (start) => session.operation.miss(host, start, 2 ** 32))) throw {};
  };
  await assert.rejects(session.run(call), { kind: "limit", code: "allocation" });
  assert.deepEqual(requests, []);
});

test("a trap begins a new module, whatever was missing", async () => {
  let resets = 0;
  const session = new Session(() => resets++);
  for (const failure of [new WebAssembly.RuntimeError("unreachable"), new RangeError("Maximum call stack size exceeded")]) {
    const call = () => {
      throw failure;
    };
    await assert.rejects(session.run(call), { name: "ZtError", kind: "internal", cause: failure });
  }
  assert.equal(resets, 2);
});

test("a request that fails, and one that is too short", async () => {
  const { host, session } = remote(MIB);
  host.reader.read = async () => new Uint8Array(1);
  await assert.rejects(session.run(reads(host, [[0, 10]])), { kind: "io", code: "io" });
  host.reader.read = async () => Promise.reject(new Error("down"));
  await assert.rejects(session.run(reads(host, [[0, 10]])), /down/);
});

test("parts that overlap what is here", () => {
  const parts = new Parts();
  parts.add(10, Uint8Array.of(10, 11, 12));
  const added = parts.add(8, Uint8Array.of(8, 9, 10, 11, 12, 13));
  assert.deepEqual(added.map(({ start, end }) => [start, end]), [[8, 10], [13, 14]]);
  assert.deepEqual(parts.gaps(5, 20), [{ start: 5, end: 8 }, { start: 14, end: 20 }]);
  const out = new Uint8Array(6);
  assert.ok(parts.read(8, out, assert.fail));
  assert.deepEqual([...out], [8, 9, 10, 11, 12, 13]);
});
