// Files for tests.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** A safetensors file of f32 matrices. */
export function safetensors(folder, name, tensors, metadata = {}) {
  // Without a prototype, "__proto__" is a name like others.
  const header = Object.assign(Object.create(null), { __metadata__: metadata });
  let end = 0;
  for (const [tensor, shape, values] of tensors) {
    header[tensor] = { dtype: "F32", shape, data_offsets: [end, (end += values.byteLength)] };
  }
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  const data = tensors.map(([, , values]) => Buffer.from(values.buffer));
  const path = join(folder, name);
  writeFileSync(path, Buffer.concat([length, json, ...data]));
  return path;
}

/** A small transformer; `moved` is how far its later layers are from those of another. */
export function model(folder, name, moved) {
  const wave = (count, layer) =>
    Float32Array.from({ length: count }, (_, at) => Math.sin(at * 12.9898 + layer) * 0.05 + (moved * layer * Math.cos(at)) / 500);
  const tensors = [["embed.weight", [200, 64], wave(12800, 0)]];
  for (let layer = 0; layer < 12; layer++) {
    for (const part of ["attn.q", "attn.k", "attn.v", "attn.out", "mlp.up", "mlp.down"]) {
      tensors.push([`layers.${layer}.${part}.weight`, [64, 64], wave(4096, layer)]);
    }
    tensors.push([`layers.${layer}.norm.weight`, [64], new Float32Array(64).fill(1)]);
  }
  if (moved) tensors.push(["head.weight", [8, 64], wave(512, 1)]);
  return safetensors(folder, name, tensors);
}

export const HOSTILE = [
  "<script>document.title='run'</script>",
  "</script><script>document.title='run'</script>",
  "<img src=x onerror=\"document.title='run'\">",
  "\"'><svg onload=document.title='run'>",
  "<!--<script>",
  "]]>&lt;&amp;",
  "javascript:document.title='run'",
  "\u202Egnp.exe\u202C",
  "a\u0000b\u001B[31mc\u2028d\u200Be",
  "__proto__",
  "constructor",
  "x".repeat(10000),
  "<".repeat(10000),
  ".".repeat(10000),
  "a/".repeat(5000),
];

/** A set of safetensors shards as large as Llama 3.1 405B, as files of a server by their paths. Values are zeros. */
export function largeSet() {
  const [layers, shards] = [126, 191];
  const parts = {
    "self_attn.q_proj": [16384, 16384],
    "self_attn.k_proj": [1024, 16384],
    "self_attn.v_proj": [1024, 16384],
    "self_attn.o_proj": [16384, 16384],
    "mlp.gate_proj": [53248, 16384],
    "mlp.up_proj": [53248, 16384],
    "mlp.down_proj": [16384, 53248],
    input_layernorm: [16384],
    post_attention_layernorm: [16384],
  };
  const all = Array.from({ length: layers }, (_, layer) =>
    Object.entries(parts).map(([part, shape]) => [`model.layers.${layer}.${part}.weight`, shape]),
  ).flat();
  all.push(["model.embed_tokens.weight", [128256, 16384]], ["model.norm.weight", [16384]], ["lm_head.weight", [128256, 16384]]);
  const [files, map, each] = [{}, {}, Math.ceil(all.length / shards)];
  const five = (number) => String(number).padStart(5, "0");
  let total = 0;
  for (let shard = 0; shard * each < all.length; shard++) {
    const [name, header] = [`model-${five(shard + 1)}-of-${five(Math.ceil(all.length / each))}.safetensors`, { __metadata__: { format: "pt" } }];
    let end = 0;
    for (const [tensor, shape] of all.slice(shard * each, (shard + 1) * each)) {
      header[tensor] = { dtype: "BF16", shape, data_offsets: [end, (end += 2 * shape.reduce((all, extent) => all * extent, 1))] };
      map[tensor] = name;
    }
    const json = Buffer.from(JSON.stringify(header));
    const head = Buffer.alloc(8 + json.length);
    head.writeBigUInt64LE(BigInt(json.length));
    json.copy(head, 8);
    const zeros = (from, to) => Buffer.alloc(Math.max(0, to - Math.max(from, head.length)));
    files[`/large/${name}`] = { byteLength: head.length + end, read: (from, to) => Buffer.concat([head.subarray(from, to), zeros(from, to)]) };
    total += end;
  }
  const index = Buffer.from(JSON.stringify({ metadata: { total_size: total }, weight_map: map }));
  files["/large/model.safetensors.index.json"] = { byteLength: index.length, read: (from, to) => index.subarray(from, to) };
  return { files, objects: all.length, shards: Object.keys(files).length - 1, byteLength: total };
}
