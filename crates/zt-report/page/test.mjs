// Opens reports in a browser: node test.mjs ROOT ZT CHROMIUM FOLDER [MODEL]...
//
// The reports are of files that this program writes, of two from the corpus, and of the models.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import axe from "axe-core";
import { chromium } from "playwright-core";
import { HOSTILE, model, safetensors } from "./made.mjs";

const [root, zt, browserName, folder, ...models] = process.argv.slice(2);
const corpus = join(root, "conformance");

/** The delta that leads from one file to another. */
function delta(name, [before, after]) {
  const path = join(folder, name);
  execFileSync(zt, ["delta", before, after, "--force", "-o", path]);
  return path;
}

const one = new Float32Array([1, 2, 3, 4]);
const pair = [model(folder, "before.safetensors", 0), model(folder, "after.safetensors", 1)];
const reports = {
  safetensors: [join(corpus, "data/two-moons.safetensors")],
  gguf: [join(corpus, "corpus/foreign/gguf/quant_mixed.gguf")],
  pair,
  delta: [delta("delta.zt", pair)],
  hostile: [
    safetensors(
      folder,
      "<b>hostile.safetensors",
      HOSTILE.map((name) => [name, [2, 2], one]),
      Object.fromEntries(HOSTILE.map((text) => [text, text])),
    ),
  ],
  many: [
    safetensors(
      folder,
      "many.safetensors",
      Array.from({ length: 100_000 }, (_, at) => [`layers.${at % 100}.experts.${Math.floor(at / 100)}.weight`, [2, 2], one]),
    ),
  ],
  ...Object.fromEntries(models.map((path) => [basename(path), [path]])),
};

// A container has no sandbox, and the reports are ours.
const executablePath = execFileSync("which", [browserName], { encoding: "utf8" }).trim();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const [name, files] of Object.entries(reports)) {
  const path = join(folder, `${name}.html`);
  execFileSync(zt, ["report", "--force", ...files, "-o", path], { stdio: ["ignore", "ignore", "inherit"] });
  for (const colorScheme of ["light", "dark"]) await check(name, path, colorScheme);
}
await browser.close();

async function check(name, path, colorScheme) {
  const page = await browser.newPage({ colorScheme, viewport: { width: 1360, height: 1000 } });
  const [url, faults] = [pathToFileURL(path).href, []];
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("request", (request) => request.url() !== url && faults.push(`request: ${request.url()}`));
  await page.goto(url);
  await page.waitForSelector(".treemap g");
  const times = { "first paint": await page.evaluate(() => performance.getEntriesByName("first-paint")[0].startTime) };

  // A click in the map chooses the object, in the table, in the detail and in the address.
  const hash = () => decodeURIComponent(new URL(page.url()).hash);
  for (let at = 0; at < 4 && hash() === ""; at++) await page.locator(".treemap g.tile").last().click();
  const chosen = () => page.locator(".grid .rows [aria-selected=true] .name").textContent();
  const title = async () => (await page.locator(".detail h3").textContent()).slice(0, 20);
  assert.ok((await chosen()).startsWith(await title()), `${name}: the table shows the object of the map`);
  assert.ok(hash().startsWith(`#${(await title()).slice(0, 1)}`) || name === "hostile", "the address names the object");

  // The keyboard alone: the table, a search, the map.
  const rows = Number(await page.locator(".grid").getAttribute("aria-rowcount")) - 1;
  await page.locator("#coloring").focus();
  const reached = [];
  for (let at = 0; at < 12 && reached.at(-1) !== "grid"; at++) {
    await page.keyboard.press("Tab");
    reached.push(await page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute("role")));
  }
  for (const place of ["listbox", "search", "filter", "sort", "grid"]) assert.ok(reached.includes(place), `${place}: ${reached}`);
  await page.keyboard.press("Home");
  const first = await title();
  await page.keyboard.press("End");
  if (rows > 1) assert.notEqual(await chosen(), first);
  await page.locator(".treemap").focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator(".treemap g.active").count(), rows > 1 ? 1 : 0);

  // A link opens an object.
  const link = { gguf: "proj.36.expert.weight", pair: "layers.3.attn.q.weight", delta: "layers.3.attn.q.weight" }[name];
  if (link !== undefined) {
    await page.goto(`${url}#${link}`);
    await page.waitForFunction((link) => document.querySelector(".detail h3").textContent === link, link);
  }
  const facts = await page.locator(".detail").textContent();
  if (name === "gguf") assert.ok(/\d+ levels in use, \d+ to 15\. Scales: /.test(facts), facts);
  if (name === "delta") assert.ok(facts.includes("changesdata") && facts.includes("1 of 1"), facts);

  // A picture is enlarged, and made small again.
  const picture = page.locator(".picture");
  if ((await picture.count()) === 1) {
    const width = async () => (await picture.boundingBox()).width;
    const before = await width();
    await page.getByLabel("Larger").press("Enter");
    assert.equal(await width(), 2 * before);
    await page.getByLabel("Smaller").press("Enter");
    assert.equal(await width(), before);
  } else assert.notEqual(name, "pair");

  // Time until the table has been drawn anew.
  await page.waitForTimeout(1000);
  const timed = (selector, value, event) =>
    page.evaluate(
      ([selector, value, event]) => {
        const [element, start] = [document.querySelector(selector), performance.now()];
        element.value = value;
        element.dispatchEvent(new Event(event));
        document.querySelector(".grid").getBoundingClientRect();
        return performance.now() - start;
      },
      [selector, value, event],
    );
  times.search = await timed("#search", "9", "input");
  times["search again"] = await timed("#search", "", "input");
  times["sort by name"] = await timed("#sort", "name", "change");
  times["sort by size"] = await timed("#sort", "size", "change");

  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  for (const { id, impact, nodes } of violations) {
    if (impact === "serious" || impact === "critical") faults.push(`axe: ${impact} ${id}: ${nodes[0].html} ${nodes[0].failureSummary}`);
  }
  assert.deepEqual(faults, [], name);
  if (name === "hostile") {
    assert.ok(!(await page.title()).includes("run"));
    const shown = await page.locator(".grid .rows").textContent();
    assert.ok(shown.includes("\\u{202e}gnp.exe") && !/[\u202E\u0000]/.test(shown), "invisible characters are written out");
  }
  // Generous: the machine of a test may be busy.
  assert.ok(times["first paint"] < 10_000, `${name}: ${times["first paint"]} ms`);
  for (const what of ["search", "search again", "sort by name", "sort by size"]) assert.ok(times[what] < 1000, `${name}: ${what}`);
  await page.goto(`${url}#`);
  await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`), fullPage: true });
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  const printed = await page.locator(".printed tbody tr:visible").count();
  assert.equal(printed, Math.min(rows, 2000), `${name}: rows are printed`);
  await page.screenshot({ path: join(folder, `${name}-${colorScheme}-print.png`), fullPage: true });
  await page.emulateMedia({ media: "screen" });
  await page.setViewportSize({ width: 390, height: 800 });
  await page.screenshot({ path: join(folder, `${name}-${colorScheme}-narrow.png`), fullPage: true });
  await page.close();
  const size = `${(readFileSync(path).length / 1024).toFixed(0)} KiB`;
  const list = Object.entries(times).map(([what, time]) => `${what} ${time.toFixed(0)} ms`);
  console.log(`${name}, ${colorScheme}: ${rows} rows, ${size}, ${list.join(", ")}`);
}
