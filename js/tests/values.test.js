/** Values as typed arrays, metadata, checks and errors. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { open, ZtError } from "zt-tensor";
import { reset } from "./node_modules/zt-tensor/module.js";

const DATA = join(process.env.ZT_ROOT, "conformance");
const at = (name) => open(join(DATA, name));

test("the array of each dtype", async () => {
  const file = await at("corpus/valid/dense_all_dtypes_zstd.zt");
  const arrays = {
    f64: Float64Array, f32: Float32Array, f16: Float32Array, bf16: Float32Array,
    i64: BigInt64Array, i32: Int32Array, i16: Int16Array, i8: Int8Array,
    u64: BigUint64Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array, bool: Uint8Array,
  };
  assert.deepEqual(file.names.toSorted(), Object.keys(arrays).map((dtype) => `t.${dtype}`).toSorted());
  for (const [dtype, array] of Object.entries(arrays)) {
    const tensor = file.tensor(`t.${dtype}`);
    assert.deepEqual([tensor.dtype, tensor.shape, tensor.format], [dtype, [5, 3], "dense"]);
    const values = await tensor.values();
    assert.ok(values instanceof array, dtype);
    assert.equal(values.length, 15);
    assert.deepEqual(await tensor.dense(), values);
  }
  const raw = await file.tensor("t.bf16").values({ raw: true });
  const widened = await file.tensor("t.bf16").values();
  assert.ok(raw instanceof Uint16Array);
  const bits = new Uint32Array(widened.buffer);
  assert.deepEqual([...raw], [...bits].map((word) => word >>> 16));
});

test("a slice, by text and by parts", async () => {
  const file = await at("data/two-moons.safetensors");
  const tensor = file.tensor("layers.1.weight");
  const all = await tensor.values();
  const expected = [...all.slice(0, 4), ...all.slice(48, 52)];
  for (const parts of ["0:2,:4", [[0, 2], [null, 4]]]) {
    const { shape, dtype, data } = await tensor.slice(parts);
    assert.deepEqual({ shape, dtype, data: [...data] }, { shape: [2, 4], dtype: "f32", data: expected });
  }
  const column = await tensor.slice(["...", -1], { raw: true });
  assert.deepEqual([column.shape, column.dtype, column.data.constructor], [[48], "bf16", Uint16Array]);
  assert.equal((await tensor.slice([[0, 48, 24], null])).data[48], all[24 * 48]);
  await assert.rejects(tensor.slice([99, 0]), { kind: "misuse", object: "layers.1.weight" });
  await assert.rejects(tensor.slice("0:x"), { kind: "misuse" });
});

test("a quantized tensor is decoded on request", async () => {
  const file = await at("corpus/foreign/gguf/quant_q4_k.gguf");
  const tensor = file.tensor(file.names.find((name) => file.tensor(name).dtype === "q4_k"));
  await assert.rejects(tensor.values(), { kind: "misuse", code: "misuse", object: tensor.name });
  const values = await tensor.dense();
  assert.ok(values instanceof Float32Array);
  assert.equal(values.length, tensor.shape.reduce((count, dimension) => count * dimension, 1));
  const blocks = await tensor.bytes();
  assert.equal(blocks.length, (values.length / 256) * 144);
  assert.deepEqual(tensor.components.map(({ role, byteLength }) => [role, byteLength]), [["data", blocks.length]]);
});

test("metadata and warnings", async () => {
  const moons = await at("data/two-moons.safetensors");
  assert.deepEqual(moons.attributes, { format: "np", task: "two moons", accuracy: "0.997" });
  assert.deepEqual([moons.kind, moons.layout, moons.byteLength], ["safetensors", undefined, 6172]);
  const large = await at("corpus/valid/attributes_unsigned_64_bit.zt");
  assert.ok(Object.values(large.tensor("x").attributes).some((value) => value === 2n ** 64n - 1n));
  const lenient = await at("corpus/lenient/digest_unknown_xxh64.zt");
  const [warning] = lenient.warnings;
  assert.ok(warning.code && warning.message);
});

test("verify reports a flipped bit, and reading it is an error", async () => {
  const bytes = readFileSync(join(DATA, "corpus/valid/digest_crc32c_raw.zt"));
  const sound = await open(bytes);
  assert.deepEqual((await sound.verify()).problems, []);
  const [name] = sound.names;
  bytes[64] ^= 1;
  const file = await open(bytes);
  const report = await file.verify({ names: [name] });
  assert.equal(report.ok, false);
  assert.ok(report.problems[0] instanceof ZtError);
  assert.deepEqual([report.problems[0].code, report.problems[0].object], ["digest-mismatch", name]);
  await assert.rejects(file.tensor(name).values(), { kind: "digest-mismatch", code: "digest-mismatch", object: name });
  await assert.rejects(file.verify({ names: ["none"] }), { code: "not-found" });
});

test("a file whose end is missing, and limits", async () => {
  const bytes = readFileSync(join(DATA, "data/two-moons.safetensors")).subarray(0, -1000);
  await assert.rejects(open(bytes), { kind: "malformed", code: "truncated" });
  const file = await open(bytes, { truncated: true });
  assert.deepEqual(file.warnings.map(({ code }) => code), ["truncated"]);
  assert.equal((await file.tensor("layers.0.bias").values()).length, 48);
  assert.throws(() => file.tensor("layers.1.weight"), { kind: "malformed", object: "layers.1.weight" });
  await assert.rejects(open(bytes, { truncated: true, strict: true }), { kind: "malformed" });

  const moons = join(DATA, "data/two-moons.safetensors");
  const limited = await open(moons, { limits: { rank: 1 } });
  assert.throws(() => limited.tensor("layers.1.weight"), { kind: "limit", object: "layers.1.weight" });
  await assert.rejects(open(moons, { limits: { length: 2 } }), { kind: "misuse", code: "misuse" });
  await assert.rejects(open(moons, { limits: { rank: "2" } }), { kind: "misuse" });
});

test("names and types that the file does not store", async () => {
  const path = join(DATA, "corpus/foreign/squizd/valid/int2_int4_hybrid.squizd");
  const given = (await open(path)).names.map((_, at) => `tensor ${at}`);
  assert.deepEqual((await open(path, { names: given })).names.toSorted(), given.toSorted());

  const opaque = join(DATA, "corpus/foreign/npy/bf16_as_v2.npy");
  assert.deepEqual((await open(opaque)).names, ["bf16_as_v2"]);
  for (const mlDtype of ["bfloat16", "bf16", ["int4", "bfloat16"]]) {
    const tensor = (await open(opaque, { mlDtype })).tensor("bf16_as_v2");
    assert.deepEqual([tensor.dtype, tensor.shape, (await tensor.values())[0]], ["bf16", [3, 3], -2.953125]);
  }
  await assert.rejects(open(opaque, { mlDtype: "bf15" }), { kind: "misuse" });
});

test("what is not there, and what is no file", async () => {
  const file = await at("data/two-moons.safetensors");
  assert.throws(() => file.tensor("none"), { name: "ZtError", kind: "misuse", code: "not-found", object: "none" });
  await assert.rejects(file.tensor("steps").bytes("indices"), { code: "not-found", object: "steps" });
  await assert.rejects(at("data/none.zt"), { kind: "io", code: "io" });
  await assert.rejects(open(new Blob(["Dear all,"])), { code: "unknown-kind" });
  await assert.rejects(open(new ArrayBuffer(0)), { code: "unknown-kind" });
  await assert.rejects(open(7), TypeError);
  for (const parts of [undefined, {}, 7]) await assert.rejects(file.tensor("steps").slice(parts), TypeError);
  assert.throws(() => file.tensor({}), { code: "not-found" });
  await assert.rejects(file.tensor("steps").bytes(7), { code: "not-found" });
  await assert.rejects(file.verify({ names: [7] }), { code: "not-found" });
  const tensor = file.tensor("steps");
  file.close();
  file.close();
  assert.throws(() => file.tensor("steps"), { code: "misuse", message: "the file is closed" });
  await assert.rejects(tensor.values(), { code: "misuse" });
});

test("after a trap, files open again", async () => {
  const old = await at("data/two-moons.safetensors");
  reset();
  assert.throws(() => old.tensor("steps"), { code: "internal" });
  const file = await at("data/two-moons.safetensors");
  old.close();
  assert.deepEqual(await file.tensor("steps").values(), BigInt64Array.of(3000n));
});
