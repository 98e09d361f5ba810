/** A GGUF of 100 MB, whose bytes are made when they are read. */

const [TENSORS, ROWS, COLUMNS, TOKENS] = [50, 512, 1024, 30000];
const TENSOR_LENGTH = 4 * ROWS * COLUMNS;
const [UINT32, STRING, ARRAY, F32] = [4, 8, 9, 0];

export function largeGguf() {
  const header = makeHeader();
  const value = (tensor, at) => tensor * 1000 + (at % 997) / 2;
  const values = (tensor) => Float32Array.from({ length: ROWS * COLUMNS }, (_, at) => value(tensor, at));
  const read = (start, end) => {
    const pieces = [header.subarray(start, end)];
    const from = Math.max(start - header.length, 0);
    const to = Math.max(end - header.length, 0);
    for (let tensor = Math.floor(from / TENSOR_LENGTH); tensor * TENSOR_LENGTH < to; tensor++) {
      const first = tensor * TENSOR_LENGTH;
      pieces.push(Buffer.from(values(tensor).buffer).subarray(Math.max(from - first, 0), to - first));
    }
    return Buffer.concat(pieces);
  };
  const byteLength = header.length + TENSORS * TENSOR_LENGTH;
  return { byteLength, read, headerLength: header.length, tensors: TENSORS, value };
}

function makeHeader() {
  const pieces = [];
  const u32 = (number) => pieces.push(Buffer.from(Uint32Array.of(number).buffer));
  const u64 = (number) => pieces.push(Buffer.from(BigUint64Array.of(BigInt(number)).buffer));
  const string = (text) => {
    u64(Buffer.byteLength(text));
    pieces.push(Buffer.from(text));
  };
  pieces.push(Buffer.from("GGUF"));
  u32(3);
  u64(TENSORS);
  u64(3);
  string("general.architecture");
  u32(STRING);
  string("test");
  string("general.alignment");
  u32(UINT32);
  u32(32);
  string("tokenizer.ggml.tokens");
  u32(ARRAY);
  u32(STRING);
  u64(TOKENS);
  for (let token = 0; token < TOKENS; token++) string(`token ${token}`);
  for (let tensor = 0; tensor < TENSORS; tensor++) {
    string(`blk.${tensor}.weight`);
    u32(2);
    u64(COLUMNS);
    u64(ROWS);
    u32(F32);
    u64(tensor * TENSOR_LENGTH);
  }
  const header = Buffer.concat(pieces);
  return Buffer.concat([header, Buffer.alloc((32 - (header.length % 32)) % 32)]);
}
