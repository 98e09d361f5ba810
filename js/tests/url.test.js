/** Files by URL: what is fetched, and what goes wrong. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { open, ZtError } from "zt-tensor";
import { largeGguf } from "./large_gguf.js";
import { bytesFile, serve } from "./server.js";

const ROOT = process.env.ZT_ROOT;
const MOONS = readFileSync(join(ROOT, "conformance/data/two-moons.safetensors"));
const SHARDS = join(ROOT, "conformance/corpus/foreign/safetensors/sharded");

const servers = [];
after(() => servers.forEach((server) => server.close()));

async function server(files, options) {
  const started = await serve((path) => files[path.slice(1)], options);
  servers.push(started);
  return started;
}

test("a tensor of a GGUF of 100 MB is read by ranges", async (context) => {
  const large = largeGguf();
  const { sent, url } = await server({ "large.gguf": large });
  const file = await open(url("large.gguf"));
  assert.equal(file.kind, "gguf");
  assert.equal(file.byteLength, large.byteLength);
  assert.ok(file.byteLength > 100e6);
  assert.equal(file.names.length, large.tensors);
  assert.equal(file.attributes["general.architecture"], "test");
  assert.equal(file.attributes["tokenizer.ggml.tokens"].at(-1), "token 29999");
  const header = { ...sent };
  assert.ok(sent.bytes < 3 * large.headerLength, `${sent.bytes} bytes for a header of ${large.headerLength}`);

  const tensor = file.tensor("blk.17.weight");
  assert.deepEqual([tensor.shape, tensor.dtype], [[512, 1024], "f32"]);
  const values = await tensor.values();
  assert.ok(values instanceof Float32Array);
  assert.ok(values.every((value, at) => value === large.value(17, at)));
  const whole = { bytes: sent.bytes - header.bytes, requests: sent.requests - header.requests };
  assert.deepEqual(whole, { bytes: 4 * 512 * 1024, requests: 1 });

  const { shape, data } = await file.tensor("blk.3.weight").slice([[10, 12], [null, 3]]);
  assert.deepEqual(shape, [2, 3]);
  assert.deepEqual([...data], [10240, 10241, 10242, 11264, 11265, 11266].map((at) => large.value(3, at)));
  const part = sent.bytes - header.bytes - whole.bytes;
  assert.ok(part <= 2 ** 17, `${part} bytes for a slice`);
  context.diagnostic(
    `of ${file.byteLength} bytes: header ${header.bytes} in ${header.requests} requests, ` +
      `tensor ${whole.bytes} in ${whole.requests}, slice ${part}`,
  );
  file.close();
});

test("tensors that are read at the same time", async () => {
  const large = largeGguf();
  const { url } = await server({ "large.gguf": large });
  const file = await open(new URL(url("large.gguf")));
  const read = file.names.slice(0, 12).map((name) => file.tensor(name).values());
  for (const [number, values] of (await Promise.all(read)).entries()) {
    assert.equal(values[1000], large.value(number, 1000));
  }
});

test("a set by its index, and a shard that is not there", async () => {
  const names = readdirSync(SHARDS);
  const files = Object.fromEntries(names.map((name) => [name, bytesFile(readFileSync(join(SHARDS, name)))]));
  const index = names.find((name) => name.endsWith(".index.json"));
  const { url } = await server(files);
  const local = await open(join(SHARDS, index));
  const file = await open(url(index));
  assert.deepEqual(file.names, local.names);
  for (const name of file.names) {
    assert.deepEqual(await file.tensor(name).dense(), await local.tensor(name).dense());
  }
  delete files[names.find((name) => name.endsWith(".safetensors"))];
  await assert.rejects(open(url(index)), (error) => error instanceof ZtError && /missing/.test(error.message));
});

test("a server that ignores ranges", async () => {
  const { sent, url } = await server({ "moons.safetensors": bytesFile(MOONS) }, { ranges: false });
  const file = await open(url("moons.safetensors"));
  assert.equal((await file.tensor("layers.1.weight").values()).length, 48 * 48);
  assert.deepEqual(sent, { bytes: MOONS.length, requests: 1 });
});

test("an empty file, a missing one, and no server", async () => {
  const { url } = await server({ empty: bytesFile(Buffer.alloc(0)), broken: { status: 500 } });
  await assert.rejects(open(url("empty")), { code: "unknown-kind" });
  await assert.rejects(open(url("none")), { name: "ZtError", code: "io", message: `${url("none")}: HTTP 404 Not Found` });
  await assert.rejects(open(url("broken")), { code: "io" });
  await assert.rejects(open("http://127.0.0.1:1/x"), { kind: "io", code: "io" });
});

test("a file that is replaced, and one that is cut", async () => {
  const large = largeGguf();
  const files = { "large.gguf": { ...large, headers: { ETag: '"one"' } } };
  const { url } = await server(files);
  const file = await open(url("large.gguf"));
  await file.tensor("blk.0.weight").slice([0, 0]);
  files["large.gguf"] = { ...large, headers: { ETag: '"two"' } };
  await assert.rejects(file.tensor("blk.20.weight").values(), { code: "changed" });
  files["large.gguf"] = { ...large, byteLength: large.headerLength };
  await assert.rejects(file.tensor("blk.21.weight").values(), { code: "io" });
});

test("answers that are not what was asked", async () => {
  const large = largeGguf();
  const { url } = await server({ "large.gguf": { ...large, headers: { "Last-Modified": "Mon, 02 Mar 2026 10:00:00 GMT" } } });
  const values = async (change) => {
    let asked = 0;
    const file = await open(url("large.gguf"), {
      fetch: async (...of) => (asked++ ? change(await fetch(...of)) : fetch(...of)),
    });
    return file.tensor("blk.20.weight").values();
  };
  const withHeader = (name, value) => (response) => {
    const headers = new Headers(response.headers);
    headers.set(name, value);
    return new Response(response.body, { status: response.status, headers });
  };
  await values((response) => response);
  const range = (response) => withHeader("Content-Range", response.headers.get("Content-Range").replace(/\d+-/, "0-"))(response);
  await assert.rejects(values(range), { code: "io", message: /asked for bytes/ });
  const later = withHeader("Last-Modified", "Tue, 03 Mar 2026 10:00:00 GMT");
  await assert.rejects(values(later), { code: "changed" });
  let sent = 0;
  const endless = (response) => {
    const pull = (stream) => stream.enqueue(new Uint8Array(sent++ < 4096 ? 2 ** 20 : 0));
    return new Response(new ReadableStream({ pull }), { status: 206, headers: response.headers });
  };
  await assert.rejects(values(endless), { code: "io", message: /more than/ });
  assert.ok(sent < 4096, `${sent} MiB`);
  await assert.rejects(open(url("large.gguf"), { fetch: async () => undefined }), { code: "io" });
});

test("the caller's fetch", async () => {
  const { url } = await server({ "moons.safetensors": bytesFile(MOONS) });
  const asked = [];
  const file = await open(url("moons.safetensors"), {
    fetch: (href, init) => {
      asked.push(init.headers.Range);
      return fetch(href, { ...init, headers: { ...init.headers, Authorization: "Bearer x" } });
    },
  });
  assert.equal(file.kind, "safetensors");
  assert.deepEqual(asked, ["bytes=0-65535"]);
});
