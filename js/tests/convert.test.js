/** Files of another kind: the bytes of the program. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { open } from "zt-tensor";
import { largeGguf } from "./large_gguf.js";
import { bytesFile, serve } from "./server.js";

const MOONS = join(process.env.ZT_ROOT, "conformance/data/two-moons.safetensors");
const folder = mkdtempSync(join(tmpdir(), "zt-"));
const servers = [];
after(() => servers.forEach((server) => server.close()));

/** What the program writes. */
function expected(path, kind, ...options) {
  const out = join(folder, `${Math.random()}.${kind}`);
  execFileSync(process.env.ZT_PROGRAM, ["convert", path, out, ...options], { stdio: "pipe" });
  return readFileSync(out);
}

async function bytesOf({ stream, byteLength }) {
  const bytes = Buffer.from(await new Response(stream).arrayBuffer());
  assert.equal(bytes.length, byteLength);
  return bytes;
}

const WAYS = [
  ["zt", {}, []],
  ["zt", { zstd: 3 }, ["--zstd=3"]],
  ["zt", { planes: true, dtype: "bf16" }, ["--planes", "--dtype", "bf16"]],
  ["safetensors", { dtype: "f16" }, ["--dtype", "f16"]],
  ["npz", {}, []],
  ["gguf", { names: ["layers.0.weight", "layers.0.bias"] }, ["--include", "layers.0.*"]],
];

for (const [kind, options, arguments_] of WAYS) {
  test(`${kind} ${JSON.stringify(options)} from a path, a blob and a URL`, async () => {
    const truth = expected(MOONS, kind, ...arguments_);
    const started = await serve(() => bytesFile(readFileSync(MOONS)));
    servers.push(started);
    for (const source of [MOONS, new Blob([readFileSync(MOONS)]), started.url("moons.safetensors")]) {
      const file = await open(source);
      const made = await bytesOf(await file.convert({ kind, ...options }));
      assert.ok(made.equals(truth), `${made.length} bytes, ${truth.length} expected`);
    }
  });
}

test("a GGUF of 100 MB by URL comes back byte for byte, in few requests", async (context) => {
  const large = largeGguf();
  const { sent, url, close } = await serve(() => large);
  const file = await open(url("large.gguf"));
  const made = await bytesOf(await file.convert({ kind: "gguf" }));
  assert.ok(made.equals(large.read(0, large.byteLength)));
  context.diagnostic(`${sent.requests} requests, ${sent.bytes} bytes`);
  assert.ok(sent.requests < 100, `${sent.requests} requests`);
  close();
});

test("what is not written", async () => {
  const file = await open(MOONS);
  await assert.rejects(file.convert({ kind: "parquet" }), { code: "misuse", message: /pass one of .*safetensors/ });
  await assert.rejects(file.convert({ kind: "zt", zstd: 1.5 }), { code: "misuse" });
  await assert.rejects(file.convert({ kind: "zt", dtype: "f12" }), { code: "misuse" });
  const sparse = await open(join(process.env.ZT_ROOT, "conformance/corpus/valid/csr_1000_rows.zt"));
  await assert.rejects(sparse.convert({ kind: "safetensors" }), { code: "lossy" });
  const { warnings } = await sparse.convert({ kind: "safetensors", dropUnsupported: true });
  assert.ok(warnings.some(({ code }) => code === "lossy"));
});
