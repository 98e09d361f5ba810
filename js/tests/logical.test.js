/** `open(..., { logical })`: the weights of quantized checkpoints. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { open } from "zt-tensor";
import { bytesFile, serve } from "./server.js";

const DATA = join(process.env.ZT_ROOT, "conformance/data/quantized");
const servers = [];
after(() => servers.forEach((server) => server.close()));

async function same(file, truth) {
  for (const name of truth.names) {
    // A library may drop the sign of a zero.
    const values = async (of) => (await of.tensor(name).values()).map((value) => value + 0);
    assert.deepEqual(await values(file), await values(truth), name);
    assert.deepEqual(file.tensor(name).shape, truth.tensor(name).shape);
  }
}

for (const model of ["01-deepseek-fp8", "04-ct-w4a16", "09-gptq", "10-awq", "11-bnb-nf4", "13-mlx", "37-gpt-oss-three"]) {
  test(`weights are those of the library: ${model}`, async () => {
    const path = join(DATA, model, "model");
    const truth = await open(join(DATA, model, "truth.safetensors"));
    const names = readdirSync(path);
    const started = await serve((name) => {
      const file = join(path, name.slice(1));
      return existsSync(file) ? bytesFile(readFileSync(file)) : undefined;
    });
    servers.push(started);
    const urls = Object.fromEntries(names.map((name) => [name, started.url(name)]));
    const blobs = Object.fromEntries(names.map((name) => [name, new Blob([readFileSync(join(path, name))])]));
    for (const source of [path, blobs, urls]) {
      const file = await open(source, { logical: "f32" });
      await same(file, truth);
      file.close();
    }
  });
}

test("without a type, values have that of the dialect", async () => {
  const path = join(DATA, "01-deepseek-fp8/model");
  const name = "model.layers.0.self_attn.q_proj.weight";
  const [own, codes] = [await open(path, { logical: true }), await open(path)];
  assert.equal(own.tensor(name).dtype, "bf16");
  assert.equal(codes.tensor(name).dtype, "f8_e4m3fn");
  assert.ok(!own.names.includes(`${name}_scale_inv`));
  const rows = await own.tensor(name).slice("3:5");
  const all = await own.tensor(name).values();
  const [, columns] = own.tensor(name).shape;
  assert.deepEqual(rows.data, all.slice(3 * columns, 5 * columns));
});

test("another type is refused, and a part that is missing is named", async () => {
  await assert.rejects(open(join(DATA, "09-gptq/model"), { logical: "i8" }), { code: "misuse", message: /logical is "i8"/ });
  const path = join(DATA, "01-deepseek-fp8/faults/scale-missing");
  const file = await open(path, { logical: true });
  const report = await file.verify();
  assert.ok(report.problems.some((problem) => /weight_scale_inv is missing/.test(problem.message)));
});
