/** What a page shows of a file. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { readFileSync } from "node:fs";
import { open } from "zt-tensor";
import { bytesFile, serve } from "./server.js";

const DATA = join(process.env.ZT_ROOT, "conformance/data");
const report = async (file, options) => JSON.parse(await file.report(options));

test("the figures of one tensor are those of its values", async () => {
  const file = await open(join(DATA, "two-moons.safetensors"));
  const { objects, histograms, pictures } = await report(file, { names: ["layers.1.weight"], detail: true });
  const values = await file.tensor("layers.1.weight").values();
  assert.deepEqual(objects.name, ["layers.1.weight"]);
  assert.equal(objects.counts[0][0], values.length);
  const [min, max, mean] = objects.finite[0];
  assert.deepEqual([min, max], [Math.min(...values), Math.max(...values)]);
  assert.ok(Math.abs(mean - values.reduce((sum, value) => sum + value, 0) / values.length) < 1e-9);
  const [[, [, , counts]]] = histograms;
  assert.equal(counts.reduce((sum, count) => sum + count, 0), values.length);
  const [[, [rows, columns]]] = pictures;
  assert.deepEqual([rows, columns], [48, 48]);
});

test("headers, and a comparison of two files by URL", async () => {
  const read = (name) => readFileSync(join(DATA, name.slice(1)));
  const { sent, url, close } = await serve((name) => bytesFile(read(name)));
  const [a, b] = await Promise.all(["a", "b"].map((name) => open(url(`summary-${name}.safetensors`))));
  const asked = { ...sent };
  const headers = await report(b, { values: "none", before: a });
  assert.deepEqual(sent, asked);
  const truth = JSON.parse(readFileSync(join(DATA, "summary.json")));
  const of = ({ objects }, name) => objects.change[objects.name.indexOf(name)];
  assert.equal(of(headers, "layers.0.w")[0], "unread");
  const whole = await report(b, { before: a });
  assert.equal(whole.objects.name.length, headers.objects.name.length);
  assert.ok(whole.objects.change.every(([status]) => status !== "unread"));
  const one = await report(b, { before: a, names: ["layers.1.w"] });
  assert.deepEqual(of(one, "layers.1.w"), of(whole, "layers.1.w"));
  const [status, relative, maxAbs, , different] = of(whole, "layers.1.w");
  const { different: count, max_abs: most, relative: part } = truth["layers.1.w"];
  assert.deepEqual([status, maxAbs, different], ["changed", most, count]);
  assert.ok(Math.abs(relative / part - 1) < 1e-6);
  close();
});

test("what no report has", async () => {
  const file = await open(join(DATA, "two-moons.safetensors"));
  await assert.rejects(file.report({ values: "some" }), { name: "ZtError", code: "misuse" });
  file.close();
  await assert.rejects(file.report(), { code: "misuse" });
});
