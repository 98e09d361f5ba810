/** Folders, deltas with their bases, and what cannot be opened. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { open, ZtError } from "zt-tensor";
import { bytesFile, serve } from "./server.js";

const DATA = join(process.env.ZT_ROOT, "conformance/data");
const MOONS = join(DATA, "two-moons.safetensors");
const folder = mkdtempSync(join(tmpdir(), "zt-"));
const zt = (...given) => execFileSync(process.env.ZT_PROGRAM, given);
const bytesOf = (...names) => readFileSync(join(...names));
const blobsOf = (path) => Object.fromEntries(readdirSync(path).map((name) => [name, new Blob([bytesOf(path, name)])]));

zt("split", MOONS, "--max-shard-size", "5KB", "--name", "model", "-o", join(folder, "set"));
zt("split", MOONS, "--to", "gguf", "--max-tensors", "3", "--name", "moons", "-o", join(folder, "gguf"));
const [base, tuned] = ["a", "b"].map((name) => join(DATA, `summary-${name}.safetensors`));
zt("convert", tuned, join(folder, "new.zt"), "--rename", "s/^layers.0/first/");
zt("delta", base, tuned, "-o", join(folder, "one.zt"));
zt("delta", tuned, join(folder, "new.zt"), "-o", join(folder, "two.zt"));

const servers = [];
after(() => servers.forEach((server) => server.close()));

async function equal(file, path) {
  const expected = await open(path);
  assert.deepEqual(file.names.toSorted(), expected.names.toSorted());
  for (const name of file.names) {
    const [found, truth] = [await file.tensor(name).dense(), await expected.tensor(name).dense()];
    // GGUF has bools as integers.
    assert.deepEqual(Array.from(found, Number), Array.from(truth, Number), name);
  }
}

for (const set of ["set", "gguf"]) {
  test(`a folder opens by its index or its first file: ${set}`, async () => {
    const path = join(folder, set);
    const files = blobsOf(path);
    assert.ok(Object.keys(files).length > 2);
    const named = Object.entries(files).map(([name, blob]) => new File([blob], name));
    const inFolder = named.map((file) => Object.defineProperty(file, "webkitRelativePath", { value: `set/${file.name}` }));
    const started = await serve((name) => bytesFile(bytesOf(path, name.slice(1))));
    servers.push(started);
    const urls = Object.fromEntries(Object.keys(files).map((name) => [name, started.url(name)]));
    const below = Object.fromEntries(Object.entries(files).map(([name, blob]) => [`runs/set/${name}`, blob]));
    for (const source of [path, files, named, inFolder, urls, below]) await equal(await open(source), MOONS);
  });
}

test("a folder without a tensor file, and with several", async () => {
  const blob = new Blob([bytesOf(MOONS)]);
  await equal(await open({ "README.md": blob, "model.safetensors": blob }), MOONS);
  await assert.rejects(open({ "README.md": blob }), { name: "ZtError", code: "misuse", message: /no tensor file/ });
  await assert.rejects(open({ "a.safetensors": blob, "b.zt": blob }), { code: "misuse", message: /2 tensor files: a.safetensors, b.zt/ });
});

test("a delta with its base, and deltas in a row", async () => {
  const at = (name) => join(folder, name);
  await equal(await open(at("one.zt"), { base }), tuned);
  await equal(await open(new Blob([bytesOf(at("one.zt"))]), { base: bytesOf(base), check: false }), tuned);
  await equal(await open(bytesOf(at("two.zt")), { base: [base, new Blob([bytesOf(at("one.zt"))])] }), at("new.zt"));
  const unchecked = await open(at("one.zt"), { base, check: false });
  assert.deepEqual(unchecked.warnings.map(({ code }) => code), ["base-unchecked"]);
  await assert.rejects(open(at("two.zt"), { base }), { name: "ZtError", code: "wrong-base" });
  await assert.rejects(open(base, { base }), { name: "ZtError", code: "misuse" });
  const alone = await open(at("one.zt"));
  const change = alone.tensor(alone.names.find((name) => alone.tensor(name).format === "zt.delta/1"));
  for (const read of [() => change.values(), () => change.dense(), () => change.slice("0")]) {
    await assert.rejects(read(), { code: "misuse", message: /open the delta with `base`/ });
  }
});

test("an error names the closest tensor", async () => {
  const file = await open(MOONS);
  const expected = { name: "ZtError", code: "not-found", message: /did you mean "layers.1.weight"/ };
  assert.throws(() => file.tensor("layers.1.weigth"), expected);
  await assert.rejects(file.verify({ names: ["layers.1.weigth"] }), expected);
});

test("what cannot be opened is an error with a code", async () => {
  for (const [source, code] of [["", "misuse"], ["s3://bucket/model.zt", "unsupported"], ["http://127.0.0.1/models/", "unsupported"]]) {
    await assert.rejects(open(source), (error) => error instanceof ZtError && error.code === code, source);
  }
  const bytes = new Uint8Array(bytesOf(MOONS));
  const file = await open(bytes);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  await assert.rejects(file.tensor("layers.1.weight").values(), { name: "ZtError", code: "io", message: /detached/ });
  await assert.rejects(open(bytes), { name: "ZtError", code: "misuse", message: /detached/ });
  await assert.rejects(open(3), TypeError);
});
