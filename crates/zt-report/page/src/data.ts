// The data of the page, as zt-report writes it: crates/zt-report/src/page.rs and report.rs.

interface Finding {
  code: string;
  message: string;
}

export interface Findings {
  count: number;
  first: Finding[];
}

export interface FileSummary {
  path: string;
  kind: string;
  byte_len: number;
  objects: number;
  parameters: number;
  decoded: number;
  stored: number;
  attributes: [string, string][];
  is_verified: boolean;
  unverified: number;
  problems: Findings;
  warnings: Findings;
  /** Objects of a delta and of its base. */
  delta?: { base: number; changed: number; whole: number; removed: number };
}

/** An integer beyond 2^53 is text. */
type Exact = number | string;

export type Status = "same" | "changed" | "added" | "removed" | "incomparable" | "unread";

/** The minimum, the maximum, the mean and the deviation of finite values. */
type Finite = [Exact, Exact, number, number];

/** What an object of a delta changes. */
export interface Delta {
  base: string | null;
  attributes: boolean;
  roles: string[];
  /** Stretches of values in which one changes, and all. */
  stretches: [number, number] | null;
}

interface Columns {
  name: string[];
  type: string[];
  format: string[];
  encoding: string[];
  shape: number[][];
  decoded: number[];
  stored: number[];
  counts: ([number, number, number, number, number, number] | null)[];
  finite: (Finite | null)[];
  problems: string[][];
  change?: [Status, number | null, number | null, number | null, number, number][];
}

interface Data {
  files: FileSummary[];
  program: string;
  is_sample: boolean;
  objects: Columns;
  histograms: [number, [number, number, number[]]][];
  before: [number, [number, number, number[]]][];
  levels: [number, [[number, number, number[]], Finite | null]][];
  deltas: [number, Delta][];
  pictures: [number, [number, number, Kind, number, number, string]][];
}

/** Bins of one width; the first begins at `start * width`. */
export interface Histogram {
  start: number;
  width: number;
  counts: number[];
}

/** The levels of a quantized object, and the figures of its scales. */
export interface Levels {
  levels: Histogram;
  scales: Finite | null;
}

/** What a block of a matrix has: its element, the mean of absolute values, or the share of stored values. */
type Kind = "element" | "magnitude" | "density";

export interface Picture {
  rows: number;
  columns: number;
  kind: Kind;
  low: number;
  high: number;
  /** 255 is not finite; the others go from `low` to `high`. */
  bytes: Uint8Array;
}

export interface Change {
  status: Status;
  relative: number | null;
  maxAbs: number | null;
  cosine: number | null;
  different: number;
  /** The norm of the first file's values. */
  norm: number;
}

/** An object with its statistics. */
export interface Item {
  at: number;
  name: string;
  type: string;
  format: string;
  encoding: string;
  shape: number[];
  decoded: number;
  stored: number;
  problems: string[];
  /** Undefined where the values cannot be read. */
  count?: number;
  zeros: number;
  nan: number;
  inf: number;
  deadRows: number;
  deadColumns: number;
  /** Undefined where no value is finite. */
  min?: Exact;
  max?: Exact;
  mean?: number;
  std?: number;
  change?: Change;
  /** Whether the figures are of a sample of the values. */
  isSample?: boolean;
}

/** What an object has beside its figures. */
export interface Details {
  histogram?: Histogram;
  /** The histogram in the first of two files. */
  before?: Histogram;
  levels?: Levels;
  delta?: Delta;
  picture?: Picture;
  /** The bytes of the object, where its figures are of a sample, or of nothing. */
  unread?: number;
}

/** The figures of all objects. */
export interface Report {
  files: FileSummary[];
  program: string;
  isSample: boolean;
  /** Whether the values were read in steps. Objects of two steps were not held against each other. */
  isInParts?: boolean;
  items: Item[];
  details(at: number): Details;
}

export function parse(text: string): Report {
  const data = JSON.parse(text) as Data;
  const { objects } = data;
  const items = objects.name.map((name, at): Item => {
    const [count, zeros = 0, nan = 0, inf = 0, deadRows = 0, deadColumns = 0] = objects.counts[at] ?? [];
    const [min, max, mean, std] = objects.finite[at] ?? [];
    const change = objects.change?.[at];
    return {
      at,
      name,
      type: objects.type[at],
      format: objects.format[at],
      encoding: objects.encoding[at],
      shape: objects.shape[at],
      decoded: objects.decoded[at],
      stored: objects.stored[at],
      problems: objects.problems[at],
      count,
      zeros,
      nan,
      inf,
      deadRows,
      deadColumns,
      min,
      max,
      mean,
      std,
      change: change && {
        status: change[0],
        relative: change[1],
        maxAbs: change[2],
        cosine: change[3],
        different: change[4],
        norm: change[5],
      },
    };
  });
  const histogram = ([start, width, counts]: [number, number, number[]]): Histogram => ({ start, width, counts });
  const histograms = (all: Data["histograms"]) => new Map(all.map(([at, bins]) => [at, histogram(bins)]));
  const [now, before] = [histograms(data.histograms), histograms(data.before)];
  const levels = new Map(data.levels.map(([at, [bins, scales]]) => [at, { levels: histogram(bins), scales }]));
  const [deltas, pictures] = [new Map(data.deltas), new Map(data.pictures)];
  const picture = (at: number): Picture | undefined => {
    const found = pictures.get(at);
    if (found === undefined) return undefined;
    const [rows, columns, kind, low, high, base64] = found;
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return { rows, columns, kind, low, high, bytes };
  };
  return {
    files: data.files,
    program: data.program,
    isSample: data.is_sample,
    items,
    details: (at) => ({
      histogram: now.get(at),
      before: before.get(at),
      levels: levels.get(at),
      delta: deltas.get(at),
      picture: picture(at),
    }),
  };
}
