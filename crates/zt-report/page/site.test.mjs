// Opens files and links with the site in a browser: node site.test.mjs ROOT ZT CHROMIUM SITE FOLDER
//
// The site and the models come from two servers on this machine, which count what they send.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join, normalize } from "node:path";
import { pathToFileURL } from "node:url";
import axe from "axe-core";
import { chromium } from "playwright-core";
import { HOSTILE, largeSet, model, safetensors } from "./made.mjs";

const [root, zt, browserName, site, folder] = process.argv.slice(2);
const { bytesFile, serve } = await import(pathToFileURL(join(root, "js/tests/server.js")));
const { largeGguf } = await import(pathToFileURL(join(root, "js/tests/large_gguf.js")));
const corpus = (name) => join(root, "conformance/corpus", name);
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html", ".css": "text/css" };

const [large, gguf] = [largeSet(), largeGguf()];
const [before, after] = [model(folder, "before.safetensors", 0), model(folder, "after.safetensors", 1)];
const made = (name) => join(folder, name);
execFileSync(zt, ["delta", before, after, "--force", "-o", made("step.zt")]);
execFileSync(zt, ["split", before, "--max-shard-size", "100KB", "--name", "model", "--force", "-o", made("set")]);
writeFileSync(made("cut.safetensors"), readFileSync(after).subarray(0, 400_000));
const whole = readFileSync(before);
const one = new Float32Array([1, 2, 3, 4]);
const many = safetensors(
  folder,
  "many.safetensors",
  Array.from({ length: 100_000 }, (_, at) => [`layers.${at % 100}.experts.${Math.floor(at / 100)}.weight`, [2, 2], one]),
);
const hostile = safetensors(folder, "hostile.safetensors", HOSTILE.map((name) => [name, [2, 2], one]));

const ofSite = (path) => {
  const found = join(site, normalize(path === "/" ? "/index.html" : path));
  return existsSync(found) ? bytesFile(readFileSync(found), { "Content-Type": TYPES[found.match(/\.\w+$/)[0]] }) : undefined;
};
const home = await serve(ofSite);
/** As the Hub does. */
const exposed = { "Access-Control-Expose-Headers": "Content-Range, ETag" };
const models = await serve((path) => {
  // Its length is asked for, because pages do not see it.
  if (path === "/large.gguf") return gguf;
  if (path === "/page") return bytesFile(Buffer.from("<!doctype html>"), { "Content-Type": "text/html" });
  if (path === "/private") return { status: 403 };
  if (large.files[path]) return { ...large.files[path], headers: exposed };
  const found = path.startsWith("/corpus/") ? corpus(normalize(path.slice(8))) : made(normalize(path.slice(1)));
  return existsSync(found) ? bytesFile(readFileSync(found)) : undefined;
});
// It opens, and its list of names is longer than the room for details.
const longNames = safetensors(folder, "long.safetensors", Array.from({ length: 3000 }, (_, at) => [`${at}.${"n".repeat(2000)}`, [2, 2], one]));
/** Answers with bytes, and never ends. */
const endless = createServer((_, response) => {
  response.writeHead(200, { "Access-Control-Allow-Origin": "*" });
  const more = () => {
    while (response.write(Buffer.alloc(2 ** 20))) {}
  };
  response.on("drain", more);
  more();
}).listen(0, "127.0.0.1");
await once(endless, "listening");
const endlessUrl = `http://127.0.0.1:${endless.address().port}/x.gguf`;
const deaf = await serve(() => ({ byteLength: 2 ** 30, read: () => Buffer.alloc(0) }), { ranges: false });

// A container has no sandbox.
const executablePath = execFileSync("which", [browserName], { encoding: "utf8" }).trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1360, height: 1000 } });
const page = await context.newPage();
page.setDefaultTimeout(20_000);
const faults = [];
page.on("console", (message) => message.type() === "error" && console.error(message.text()));
page.on("pageerror", (error) => faults.push(error.message));
// Nobody is asked but who was named.
const NOBODY = "http://127.0.0.1:1/x";
const asked = [home.url(""), models.url(""), deaf.url(""), endlessUrl, NOBODY, "https://huggingface.co/", "data:"];
context.on("request", (request) => {
  if (!asked.some((start) => request.url().startsWith(start))) faults.push(`request: ${request.url()}`);
});

const status = page.locator("#status");
const query = (url, other) => `?url=${encodeURIComponent(url)}${other ? `&with=${encodeURIComponent(other)}` : ""}`;
const drawn = () => page.waitForSelector("main .grid [role=gridcell]");
const shown = async () => (await page.locator("main").textContent()).replaceAll("\u202f", " ");
const text = (selector) => page.locator(selector).textContent();
async function visit(url, other, hash = "") {
  await page.goto("about:blank");
  await page.goto(home.url("") + query(url, other) + hash);
}
/** What an address that cannot be opened is answered. */
async function refused(url, expected) {
  await visit(url);
  await page.waitForSelector("#status.fault");
  assert.match(await status.textContent(), expected);
}
async function check(name) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes[0].html} ${nodes[0].failureSummary}`), [], name);
}
const picture = (name) => page.screenshot({ path: made(`${name}.png`) });
const measured = [];

// The list of a large model by its index: headers alone.
{
  const [start, sent] = [performance.now(), { ...models.sent }];
  await visit(models.url("large/model.safetensors.index.json"));
  await drawn();
  const time = performance.now() - start;
  const [requests, bytes] = [models.sent.requests - sent.requests, models.sent.bytes - sent.bytes];
  assert.equal(Number(await page.locator(".grid").getAttribute("aria-rowcount")), large.objects + 1);
  assert.ok(requests <= 1 + 3 * large.shards, `${requests} requests`);
  assert.ok(bytes <= 2 * 2 ** 20, `${bytes} bytes`);
  assert.match(await shown(), /not verified.*not looked at/s);
  measured.push(["list of 191 shards, 812 GB", requests, bytes, time]);
  await check("headers");
  await picture("large");
}
// A tensor of it that is too long to be read at once is a sample, and a short one is read.
{
  const sent = { ...models.sent };
  await page.evaluate(() => (location.hash = "model.layers.100.mlp.up_proj.weight"));
  await page.waitForFunction(() => document.querySelector(".detail").textContent.includes("sample of 256 KiB"));
  const bytes = models.sent.bytes - sent.bytes;
  assert.ok(bytes <= 2 ** 20, `${bytes} bytes of a sample`);
  measured.push(["sample of a tensor of 1.7 GB", models.sent.requests - sent.requests, bytes]);
  await page.evaluate(() => (location.hash = "model.layers.100.self_attn.k_proj.weight"));
  await page.waitForFunction(() => /values16,777,216.*Histogram/s.test(document.querySelector(".detail").textContent));
}
// A tensor of a GGUF by a link.
{
  const [start, sent] = [performance.now(), { ...models.sent }];
  await visit(models.url("large.gguf"), undefined, "#blk.17.weight");
  await page.waitForSelector(".detail .chart");
  const time = performance.now() - start;
  measured.push(["GGUF of 105 MB and a tensor of 2 MiB", models.sent.requests - sent.requests, models.sent.bytes - sent.bytes, time]);
  assert.equal(await text(".detail h3"), "blk.17.weight");
  assert.ok((await text(".detail")).includes("min17000"));
  await picture("gguf");
}
// Two links. What changed comes first, once it is known.
{
  await visit(models.url("before.safetensors"), models.url("after.safetensors"));
  await drawn();
  assert.match(await shown(), /unread85objects/);
  await page.getByRole("button", { name: /^Read the values/ }).click();
  await page.waitForFunction(() => /changed66objects/.test(document.querySelector("main").textContent));
  assert.match(await shown(), /same19.*added1.*Change by layer/s);
  await page.waitForFunction(() => /^layers\.11\..*changed/.test(document.querySelector(".grid .rows [aria-rowindex='2']").textContent));
  await page.locator(".grid .rows [role=row]").first().click();
  await page.waitForSelector(".detail .before");
  // The second file as another kind, as the program writes it.
  await page.getByLabel("Kind to save as").selectOption("zt");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as" }).click()]);
  assert.equal(download.suggestedFilename(), "after.zt");
  execFileSync(zt, ["convert", after, made("after.zt"), "--force"]);
  assert.ok(readFileSync(await download.path()).equals(readFileSync(made("after.zt"))));
  await check("comparison");
  await picture("comparison");
}
// A delta after its base, a set by its index, a DCP folder from the disk.
{
  await visit(models.url("before.safetensors"), models.url("step.zt"), "#layers.3.attn.q.weight");
  await page.waitForFunction(() => /statuschanged/.test(document.querySelector(".detail")?.textContent));
  await visit(models.url("set/model.safetensors.index.json"), undefined, "#embed.weight");
  await page.waitForSelector(".detail .chart");
  await page.goto(home.url(""));
  await page.locator("#folders").setInputFiles(corpus("dcp/fsdp2"));
  await page.waitForFunction(() => /verifiedok/.test(document.querySelector("main").textContent));
  assert.match(await shown(), /^fsdp2.*objects16dcp file/);
  assert.equal(await page.title(), "fsdp2");
}
// A cut file shows what is whole; pickles are named and not run; what a host refuses is said.
{
  await visit(models.url("cut.safetensors"));
  await drawn();
  assert.match(await shown(), /truncated.*fetch the rest from byte 400000 on/s);
  await page.locator(".reasons summary").first().click();
  await page.locator(".reasons li button").first().click();
  assert.match(await text(".detail .problems"), /truncated/);
  await refused(models.url("corpus/pickle/bad_code.pkl"), /would call posix\.system.*nothing was run/);
  await refused(models.url("nothing.gguf"), /HTTP 404/);
  await refused(models.url("private"), /HTTP 403: .*download the file and drop it here/);
  await refused(models.url("page"), /of a web page, and not of a file/);
  await refused(deaf.url("model.gguf"), /ignores ranges.*drop it here/);
  await refused(endlessUrl, /ignores ranges.*drop it here/);
  for (const nowhere of ["javascript:alert(1)", "data:,x", "hf:gpt2", "file:///x.gguf"]) await refused(nowhere, /is no address: give/);
  await refused("http://", /is no address: give/);
  await refused(NOBODY, /CORS.*Access-Control-Allow-Origin/);
}
// A repository of the Hub.
{
  const hub = await context.newPage();
  const paths = [];
  await hub.route("https://huggingface.co/**", (route) => {
    const path = new URL(route.request().url()).pathname;
    paths.push(path);
    const headers = { "Access-Control-Allow-Origin": "*" };
    return path.endsWith("/model.safetensors") ? route.fulfill({ status: 200, body: whole, headers }) : route.fulfill({ status: 404, headers });
  });
  await hub.goto(home.url("") + query("hf:org/model@v1"));
  await hub.waitForSelector("main .grid [role=gridcell]");
  assert.deepEqual(paths, ["/org/model/resolve/v1/model.safetensors.index.json", "/org/model/resolve/v1/model.safetensors"]);
  await hub.close();
}
// Dropped files, without any request. Names are text.
{
  await page.goto(home.url(""));
  await check("the first page");
  const { requests } = models.sent;
  const bytes = [...readFileSync(hostile)];
  await page.evaluate((bytes) => {
    const dropped = new DataTransfer();
    dropped.items.add(new File([new Uint8Array(bytes)], "hostile.safetensors"));
    dispatchEvent(new DragEvent("drop", { dataTransfer: dropped }));
  }, bytes);
  await drawn();
  await page.waitForFunction(() => document.querySelector("main").textContent.includes("verifiedok"));
  assert.ok(!(await page.title()).includes("run"));
  assert.ok((await text(".grid .rows")).includes("\\u{202e}gnp.exe"));
  await page.goto(home.url(""));
  await page.locator("#files").setInputFiles([before, after]);
  await page.waitForFunction(() => /changed66objects/.test(document.querySelector("main").textContent));
  assert.equal(models.sent.requests, requests);
}
// What was open stays usable while another file is opened in vain. A file that comes late replaces none.
{
  await visit(models.url("after.safetensors"));
  await drawn();
  await page.locator("#files").setInputFiles({ name: "x.safetensors", mimeType: "", buffer: Buffer.from("no model") });
  await page.waitForSelector("#status.fault");
  await page.evaluate(() => (location.hash = "layers.7.attn.q.weight"));
  await page.waitForSelector(".detail .chart");
  let late;
  const isAsked = new Promise((asked) => {
    page.route("**/step.zt", async (route) => {
      asked();
      await new Promise((go) => (late = go));
      await route.continue();
    });
  });
  await visit(models.url("before.safetensors"), models.url("step.zt"));
  await isAsked;
  await page.locator("#files").setInputFiles(after);
  await page.waitForFunction(() => document.title === "after.safetensors");
  late();
  await page.waitForTimeout(300);
  await page.evaluate(() => (location.hash = "head.weight"));
  await page.waitForSelector(".detail .chart");
  assert.equal(await text("#status.fault, .detail h3"), "head.weight");
  assert.equal(await page.evaluate(() => location.search), "");
  await page.unroute("**/step.zt");
}
// Nothing is said to be sound that was not read: long names, and an object whose sample alone was read.
{
  await page.goto(home.url(""));
  await page.locator("#files").setInputFiles(longNames);
  await page.waitForFunction(() => /verifiedok/.test(document.querySelector("main").textContent));
  await page.waitForFunction(() => /0 objectsno NaN, no dead rows$/.test(document.querySelector(".cards").textContent));
  await visit(models.url("large/model.safetensors.index.json"), undefined, "#model.layers.100.mlp.up_proj.weight");
  await page.waitForFunction(() => document.querySelector(".detail")?.textContent.includes("sample of 256 KiB"));
  assert.match(await shown(), /not verified.*not read/s);
}
// A hundred thousand tensors: the time to the list, and frames while it is scrolled.
{
  await page.goto(home.url(""));
  // The engine is loaded.
  await page.locator("#files").setInputFiles(before);
  await drawn();
  const start = performance.now();
  await page.locator("#files").setInputFiles(many);
  await page.waitForFunction(() => document.querySelector(".grid")?.getAttribute("aria-rowcount") === "100001");
  const time = performance.now() - start;
  measured.push(["list of 100,000 tensors from disk", 0, 0, time]);
  await page.getByRole("button", { name: "Stop" }).click();
  const frames = await page.evaluate(async () => {
    const grid = document.querySelector(".grid");
    const [start, seen] = [performance.now(), []];
    while (performance.now() - start < 1000) {
      grid.scrollTop += 500;
      seen.push(await new Promise(requestAnimationFrame));
    }
    return { count: seen.length, longest: Math.max(...seen.slice(1).map((at, place) => at - seen[place])) };
  });
  measured.push([`frames in a second of scrolling: ${frames.count}, the longest ${frames.longest.toFixed(0)} ms`]);
  const rows = await page.locator(".grid .rows [role=row]").count();
  assert.ok(rows < 100, `${rows} rows are elements`);
}
// Dark, and as narrow as a phone, by the keyboard.
for (const colorScheme of ["light", "dark"]) {
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize({ width: 390, height: 800 });
  await visit(models.url("after.safetensors"), undefined, "#layers.3.attn.q.weight");
  await page.waitForSelector(".detail .chart");
  await check(`narrow, ${colorScheme}`);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is no wider than the screen");
  await page.screenshot({ path: made(`narrow-${colorScheme}.png`), fullPage: true });
}
// Without a network, after the first visit.
{
  await page.goto(home.url(""));
  await page.evaluate(() => navigator.serviceWorker.ready);
  await context.setOffline(true);
  await page.goto(home.url(""));
  await page.locator("#files").setInputFiles(before);
  await drawn();
}
assert.deepEqual(faults, []);
await browser.close();
for (const server of [home, models, deaf, endless]) server.close();
endless.closeAllConnections();
for (const [what, ...figures] of measured) {
  const [requests, bytes, time] = figures;
  console.log([what, requests !== undefined && `${requests} requests`, bytes !== undefined && `${bytes} bytes`, time && `${time.toFixed(0)} ms`].filter(Boolean).join(", "));
}
