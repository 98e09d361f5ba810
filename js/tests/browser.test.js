/** The package in Chromium: from a blob, from a URL, from bytes. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { open } from "zt-tensor";
import { largeGguf } from "./large_gguf.js";
import { bytesFile, serve } from "./server.js";

const CHROMIUM = "/usr/bin/chromium";
const PACKAGE = dirname(fileURLToPath(import.meta.resolve("zt-tensor")));
const ROOT = process.env.ZT_ROOT;
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };
const PAGE = '<!doctype html><script type="importmap">{"imports":{"zt-tensor":"/zt/index.js"}}</script>';

const skip = !existsSync(CHROMIUM) && !process.env.CI && "there is no Chromium";
const large = largeGguf();

let browser, page, server;

before(async () => {
  if (skip) return;
  server = await serve((path) => {
    if (path === "/") return bytesFile(Buffer.from(PAGE), { "Content-Type": TYPES[".html"] });
    if (path === "/large.gguf") return large;
    const [, folder, name] = path.match(/^\/(zt|corpus)\/(.*)$/) ?? [];
    const home = { zt: PACKAGE, corpus: join(ROOT, "conformance/corpus") }[folder];
    const found = home && join(home, normalize(name));
    if (!found || !existsSync(found)) return undefined;
    return bytesFile(readFileSync(found), { "Content-Type": TYPES[found.match(/\.\w+$/)?.[0]] ?? "application/octet-stream" });
  });
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  page = await browser.newPage();
  await page.goto(server.url(""));
});

after(async () => {
  await browser?.close();
  server?.close();
});

/** Opens a file of the corpus in the page. Returns the values of all its tensors. */
function inPage(name, way) {
  return page.evaluate(async ({ name, way }) => {
    const { open } = await import("zt-tensor");
    const url = `/corpus/${name}`;
    const blob = () => fetch(url).then((response) => response.blob());
    const sources = { url: () => url, blob, bytes: async () => (await blob()).arrayBuffer() };
    const file = await open(await sources[way]());
    const values = {};
    for (const name of file.names) values[name] = Array.from(await file.tensor(name).dense(), String);
    return { kind: file.kind, values };
  }, { name, way });
}

for (const name of ["valid/dense_all_dtypes_zstd.zt", "foreign/gguf/quant_q4_k.gguf", "torch/lightning.pt"]) {
  for (const way of ["url", "blob", "bytes"]) {
    test(`${name} from ${way}`, { skip }, async () => {
      const file = await open(join(ROOT, "conformance/corpus", name));
      const found = await inPage(name, way);
      assert.equal(found.kind, file.kind);
      assert.deepEqual(Object.keys(found.values), file.names);
      for (const name of file.names) {
        assert.deepEqual(found.values[name], Array.from(await file.tensor(name).dense(), String), name);
      }
    });
  }
}

test("a tensor of a GGUF of 100 MB by URL", { skip }, async (context) => {
  const before = server.sent.bytes;
  const sum = await page.evaluate(async () => {
    const { open } = await import("zt-tensor");
    const file = await open("large.gguf");
    const values = await file.tensor("blk.49.weight").values();
    return values.reduce((sum, value) => sum + value, 0);
  });
  const expected = Array.from({ length: 512 * 1024 }, (_, at) => large.value(49, at)).reduce((sum, value) => sum + value, 0);
  assert.equal(sum, expected);
  const fetched = server.sent.bytes - before;
  assert.ok(fetched < 4e6, `${fetched} bytes`);
  context.diagnostic(`${fetched} of ${large.byteLength} bytes were fetched`);
});

test("an error has its code in a page", { skip }, async () => {
  const error = await page.evaluate(async () => {
    const { open, ZtError } = await import("zt-tensor");
    try {
      await open(new Blob(["Dear all,"]));
    } catch (error) {
      return { isOurs: error instanceof ZtError, code: error.code };
    }
  });
  assert.deepEqual(error, { isOurs: true, code: "unknown-kind" });
});
