// Compiled, not run: the declarations fit how the package is used.
import { open, ZtError, type Conversion, type DensePart, type Report, type TensorFile } from "zt-tensor";

export async function use(blob: Blob): Promise<void> {
  const file: TensorFile = await open(blob, { files: { "model-00001-of-00002.safetensors": new Uint8Array(1) } });
  const { attributes, warnings } = await open(new URL("https://example.com/model.gguf"), { fetch, mlDtype: "int4", limits: { rank: 8 } });
  await open({ "a.zt": blob }, { base: [blob, new URL("https://example.com/a.zt")], check: false });
  const tensor = file.tensor(file.names[0] ?? "");
  const values = await tensor.values({ raw: true });
  if (values instanceof BigInt64Array) console.log(values[0]! + 1n);
  const part: DensePart = await tensor.slice([0, [null, 4], [0, 8, 2], null, "..."]);
  const { stream, byteLength }: Conversion = await file.convert({ kind: "zt", zstd: 3, names: ["a"], dtype: "bf16" });
  const document: string = await file.report({ values: "sample", before: file });
  console.log(stream.locked, byteLength, document.length);
  // @ts-expect-error: the kind is not left out
  await file.convert({ zstd: 3 });
  const report: Report = await file.verify({ strict: true, names: ["a"] });
  const problem: ZtError | undefined = report.problems[0];
  console.log(attributes["general.name"], warnings[0]?.code, part.data, problem?.offset);
  // @ts-expect-error: a tensor has no value before it is read
  console.log(tensor.data);
}
