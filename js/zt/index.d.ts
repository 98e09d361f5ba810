/** A file: its bytes, a `Blob` or `File` of a page, a URL, or in node a path. */
export type Source = ArrayBuffer | SharedArrayBuffer | ArrayBufferView | Blob | URL | string;

/**
 * The files of a folder: a `FileList` or an array of `File`s, or files by their paths. The only index opens them, or the first
 * file of a numbered set, or the only tensor file. In node, the path of a folder is one, too.
 */
export type Folder = Iterable<File> | Record<string, Source>;

export interface OpenOptions {
  /** The name of the file in messages. */
  name?: string;
  /** Files beside bytes or a blob, by their paths: the shards of a set. URLs and paths need none. */
  files?: Record<string, Source>;
  /**
   * What the delta `source` changes: the base, or in an array the first base and then the earlier deltas. The result is opened,
   * and reads what it needs of both.
   */
  base?: Source | Folder | (Source | Folder)[];
  /**
   * Whether the identities of the base and of the result are compared with those in the delta, which reads all values of both.
   * `true` by default. Without it, a wrong base may give wrong values, which is the warning `base-unchecked`.
   */
  check?: boolean;
  /** Sends requests in place of the global `fetch`: to add headers, or to try again. */
  fetch?: typeof fetch;
  /** Whether one faulty tensor refuses the whole file. */
  strict?: boolean;
  /**
   * Whether a file of safetensors, GGUF, npz or PyTorch whose end is missing opens with the tensors that are whole.
   * It has a warning of the code `truncated`. `tensor(name)` throws the error of a tensor that is cut.
   */
  truncated?: boolean;
  /** Names for the tensors of SLM1 and SQUIZD, which store none. */
  names?: Iterable<string>;
  /**
   * What opaque elements of NumPy are, by their length: types of `ml_dtypes` such as `bfloat16` or `int4`. NumPy saves such
   * arrays as `V1` and `V2`.
   */
  mlDtype?: string | string[];
  /**
   * Whether a quantized checkpoint opens as the weights that its codes and scales mean: `true` for the type of the dialect's own
   * code, or the type of the values. `config.json` and its like are read beside the file.
   */
  logical?: boolean | "f32" | "bf16" | "f16";
  /** What a file or a tensor may demand. One that demands more is a {@link ZtError} of the kind `limit`. */
  limits?: Limits;
}

export interface Limits {
  /** Bytes of the manifest of `.zt`. 1 GiB. */
  manifestLength?: number;
  /** Levels of arrays, maps and tags within the manifest. 64. */
  nesting?: number;
  /** Bytes of one component, decompressed. 64 GiB. */
  decodedLength?: number;
  /** Dimensions of one tensor. 64. */
  rank?: number;
  /** Components of one tensor. 1,024. */
  components?: number;
  /** Bytes of a name. 64 KiB. */
  nameLength?: number;
  /** Encoded bytes of the attributes of one tensor. 1 MiB. */
  attributesLength?: number;
  /** A call that reads a whole file reads at most this many times its length, plus 16 MiB. 8. */
  overlap?: number;
}

/**
 * Opens a tensor file of any kind. Its bytes decide the kind. Nothing in it is run.
 *
 * Of a blob, a URL or a path, only the bytes are read that a call needs. The server of a URL should answer range
 * requests; otherwise it sends the whole file, which stays in memory.
 *
 * @throws {ZtError}
 */
export function open(source: Source | Folder, options?: OpenOptions): Promise<TensorFile>;

/** An open file. */
export class TensorFile {
  private constructor();
  /** `zt`, `safetensors`, `gguf`, `pytorch`, ... */
  readonly kind: string;
  /** The generation of a `.zt` file, such as `1.2`. */
  readonly layout: string | undefined;
  /** The number of bytes; of all files for a set. */
  readonly byteLength: number;
  /** The names of the tensors, faulty ones included. */
  readonly names: string[];
  /** The metadata of the file. Each access makes it anew. */
  readonly attributes: Attributes;
  /** What a user should know and is no error. Each access makes them anew. */
  readonly warnings: FileWarning[];

  /** A tensor. None of its values is read. Throws a {@link ZtError} of the code `not-found`, or its fault. */
  tensor(name: string): Tensor;

  /**
   * Checks digests, contents and the rules of the formats. Damage is in the report, and throws nothing. One call
   * fetches at most 1 GiB by URL or from a blob: give `names` to check a larger file in steps.
   */
  verify(options?: VerifyOptions): Promise<Report>;

  /**
   * The data of the page that `zt report` makes, as JSON: figures, histograms and pictures of the tensors. One call fetches at
   * most 1 GiB by URL or from a blob.
   */
  report(options?: ReportOptions): Promise<string>;

  /**
   * The tensors as a file of another kind: the bytes that `zt convert` writes with the same options. The new file is in memory
   * until the stream is read, and a call fetches at most 1 GiB by URL or from a blob.
   *
   * @throws {ZtError} of the code `lossy` if the kind cannot represent something, `unsupported`, or the code of a damaged tensor
   */
  convert(options: ConvertOptions): Promise<Conversion>;

  /** Frees the memory of the file, and closes it. */
  close(): void;
}

/** A tensor of a file. */
export class Tensor {
  private constructor();
  readonly name: string;
  /** Its dimensions, outermost first. Above 2^53 they are rounded. */
  readonly shape: number[];
  /** `f32`, `bf16`, `f8_e4m3fn`, `q4_k`, ...; `undefined` if the file does not record it. */
  readonly dtype: string | undefined;
  /** `dense`, `sparse_csr`, `gguf.q4_k/1`, ... */
  readonly format: string;
  readonly attributes: Attributes;
  /** Its stored parts. */
  readonly components: Component[];
  /** The rule of its format that it breaks. Its components can be read, its values cannot. */
  readonly fault: ZtError | undefined;

  /**
   * Its values, in a copy. f16, bf16 and FP8 are widened to a `Float32Array`, unless `raw` asks for the elements as
   * `Uint16Array` or `Uint8Array`. i64 is a `BigInt64Array`, bool a `Uint8Array`. A complex value is two elements.
   *
   * @throws {ZtError} of the code `misuse` for a quantized or sparse tensor
   */
  values(options?: ValueOptions): Promise<TypedArray>;

  /** As `values`, for any tensor: a quantized one is decoded, and a sparse one filled in. */
  dense(options?: ValueOptions): Promise<TypedArray>;

  /** A part of the dense values. Only the bytes that it needs are read: `slice([[0, 4], null, -1])`. */
  slice(parts: string | Part[], options?: ValueOptions): Promise<DensePart>;

  /** The bytes of a component, decompressed, such as the blocks of a quantized tensor. */
  bytes(role?: string): Promise<Uint8Array>;
}

export interface Component {
  /** `data`, `indices`, ... */
  role: string;
  dtype: string | undefined;
  /** The number of bytes, decompressed. `undefined` if the file does not record it. */
  byteLength: number | undefined;
  /** `raw` or `zstd`. */
  encoding: string;
}

/**
 * A part of an index, as NumPy has it: a place, which removes the dimension; `[start, stop]` or `[start, stop, step]`,
 * in which `null` is the end; `null` for all; `"..."` for all of the dimensions that have no other part.
 */
export type Part = number | [start: number | null, stop: number | null, step?: number] | null | "...";

export interface DensePart {
  shape: number[];
  /** The type of the elements in `data`. */
  dtype: string;
  data: TypedArray;
}

export interface ValueOptions {
  /** Whether small floats stay as they are stored. */
  raw?: boolean;
}

export type TypedArray =
  | Float64Array
  | Float32Array
  | BigInt64Array
  | BigUint64Array
  | Int32Array
  | Int16Array
  | Int8Array
  | Uint32Array
  | Uint16Array
  | Uint8Array;

/** Integers above 2^53 are of type `bigint`. */
export type Attribute = null | boolean | number | bigint | string | Uint8Array | Attribute[] | Attributes;
export interface Attributes {
  [name: string]: Attribute;
}

export interface VerifyOptions {
  /** Whether faults that readers tolerate are problems too. */
  strict?: boolean;
  /** The tensors to check; all by default. */
  names?: string[];
}

export interface ConvertOptions {
  /** `zt`, `safetensors`, `gguf`, `npz`, ... */
  kind: string;
  /** The tensors to write; all by default. */
  names?: Iterable<string>;
  /** The type that floating-point values are cast to: `f32`, `bf16`, `f8_e4m3fn`, ... */
  dtype?: string;
  /** The dialect of quantized weights, such as `gguf` or `zt`: docs/quantized.md. */
  dialect?: string;
  /** The level of zstd, from -7 to 22, for `zt`. Without it values are not compressed. */
  zstd?: number;
  /** Whether `zt` stores the bytes of floats in planes, which takes a third less space for bf16. */
  planes?: boolean;
  /** Whether quantized and sparse tensors are written as their values. */
  dense?: boolean;
  /** Whether what the kind cannot represent is left out, with a warning. */
  dropUnsupported?: boolean;
  /** Whether damaged tensors are left out, each with a warning. */
  skipDamaged?: boolean;
  /** Whether a cast may make values infinite, with a warning. */
  allowInf?: boolean;
}

export interface Conversion {
  /** The bytes of the new file. */
  stream: ReadableStream<Uint8Array>;
  byteLength: number;
  /** Those of the file, and one for each loss. */
  warnings: FileWarning[];
}

export interface ReportOptions {
  /** Which values are read: `all` by default, a `sample` of 256 KiB of each tensor, or `none`. */
  values?: "all" | "sample" | "none";
  /** The tensors of the report; all by default. */
  names?: Iterable<string>;
  /** The file to compare with: what changed since. */
  before?: TensorFile;
  /** Whether the histograms and pictures of all tensors are kept. By default, large tensors have theirs first, within 1 MiB. */
  detail?: boolean;
}

export interface Report {
  /** Whether there are no problems. */
  ok: boolean;
  problems: ZtError[];
  warnings: FileWarning[];
  /** Components without a digest. */
  unverified: { tensor: string; role: string }[];
  /** Whether the manifest of a `.zt` file has a digest of its own, which was right; `null` for others. */
  manifestDigest: boolean | null;
  /** Decoded bytes that were checked. */
  byteLength: number;
}

export interface FileWarning {
  message: string;
  /** A stable word, listed in spec/warnings.md. */
  code: string;
  object: string | undefined;
  component: string | undefined;
}

/** Why something cannot be read. */
export class ZtError extends Error {
  private constructor();
  /** After `internal`, a fault of zt itself, files must be opened again. */
  readonly kind: "io" | "malformed" | "digest-mismatch" | "unsupported" | "limit" | "misuse" | "interrupted" | "internal";
  /** A stable word, listed in spec/errors.md. */
  readonly code: string;
  /** The tensor at fault. */
  readonly object: string | undefined;
  readonly component: string | undefined;
  /** The first byte at fault. */
  readonly offset: number | undefined;
}
