// What the colours of the map mean.

import { scaleLog, scaleOrdinal } from "d3-scale";
import { interpolateRdBu, interpolateViridis, schemeTableau10 } from "d3-scale-chromatic";

import type { Item } from "./data";
import type { Sums } from "./modules";
import { digits, percent } from "./text";

/** A colour, and the legend that explains it. */
export interface Coloring {
  of(sums: Sums): string;
  /** What the colour says, in words. */
  label(sums: Sums): string;
  legend: { color: string; label: string }[];
  /** Whether the legend is a ramp from its first to its last colour. */
  isRamp: boolean;
}

export const NONE = "#8a8f98";
export const BAD = "#d03050";
const GOOD = "#3b8f6b";

/** From 0 to 1, for magnitudes. */
export const magnitude = interpolateViridis;

/** From -1 to 1, for signed values. */
export const signed = (part: number) => interpolateRdBu(0.5 - part / 2);

function categories(all: string[], of: (sums: Sums) => string): Coloring {
  const colors = scaleOrdinal(all, schemeTableau10);
  return {
    of: (sums) => colors(of(sums)),
    label: of,
    legend: all.map((label) => ({ color: colors(label), label })),
    isRamp: false,
  };
}

const STEPS = Array.from({ length: 24 }, (_, at) => at / 23);

/** The greatest over the least value of a ramp, at least. */
const NARROWEST = 4;

/** A ramp over the positive values, by their logarithm. */
function ramp(
  items: Item[],
  value: (item: Item) => number,
  of: (sums: Sums) => number | undefined,
  unit: string,
): Coloring {
  // Few objects, or small ones, that are far from all others would leave one colour for these.
  const positive = items.filter((item) => value(item) > 0 && Number.isFinite(value(item)));
  positive.sort((a, b) => value(a) - value(b));
  const bytes = positive.reduce((all, item) => all + item.decoded, 0);
  let below = 0;
  const common = positive.filter((item) => {
    const before = below;
    below += item.decoded;
    return below > 0.01 * bytes && before < 0.99 * bytes;
  });
  const [least, greatest] = [positive[0], positive[positive.length - 1]].map((item) => (item ? value(item) : 1));
  const [from, to] = common.length > 0 ? [value(common[0]), value(common[common.length - 1])] : [least, greatest];
  // Values that are nearly equal do not fill the scale.
  const wider = Math.max(1, Math.sqrt(NARROWEST / (to / from)));
  const [low, high] = [from / wider, to * wider];
  const scale = scaleLog([low, high], [0, 1]).clamp(true);
  const text = (value: number | undefined) => (value === undefined ? "no figure" : `${unit} ${digits(value)}`);
  return {
    of(sums) {
      const value = of(sums);
      return value === undefined ? NONE : magnitude(value > 0 ? scale(value) : 0);
    },
    label: (sums) => text(of(sums)),
    legend: STEPS.map((part) => {
      const beyond = part === 0 && least < low ? "≤ " : part === 1 && greatest > high ? "≥ " : "";
      return { color: magnitude(part), label: beyond + digits(scale.invert(part)) };
    }),
    isRamp: true,
  };
}

export const COLORINGS: Record<string, (items: Item[]) => Coloring> = {
  change(items) {
    const coloring = ramp(items, (item) => item.change?.relative ?? 0, (sums) => sums.relative, "changed by");
    return {
      ...coloring,
      of: (sums) => (sums.isNew ? BAD : sums.relative === 0 ? NONE : coloring.of(sums)),
      label: (sums) => (sums.isNew ? "added, removed or of another shape" : coloring.label(sums)),
    };
  },
  type: (items) => categories(distinct(items, (item) => item.type), (sums) => most(sums.types)),
  storage: (items) => categories(distinct(items, storage), (sums) => most(sums.storages)),
  zeros: () => ({
    of: (sums) => (sums.count === 0 ? NONE : magnitude(sums.zeros / sums.count)),
    label: (sums) => (sums.count === 0 ? "no figure" : `${percent(sums.zeros / sums.count)} zeros`),
    legend: STEPS.map((part) => ({ color: magnitude(part), label: percent(part) })),
    isRamp: true,
  }),
  deviation: (items) => ramp(items, (item) => item.std ?? 0, (sums) => sums.std, "deviation"),
  problems: () => ({
    of: (sums) => (sums.problems > 0 ? BAD : GOOD),
    label: (sums) => (sums.problems > 0 ? `${sums.problems} with problems` : "no problems"),
    legend: [
      { color: GOOD, label: "no problems" },
      { color: BAD, label: "with problems" },
    ],
    isRamp: false,
  }),
};

export const storage = (item: Item) =>
  [item.format, item.encoding].filter((text) => text !== "" && text !== "raw").join(", ");

/** The values with the most bytes first. */
function distinct(items: Item[], of: (item: Item) => string): string[] {
  const bytes = new Map<string, number>();
  for (const item of items) bytes.set(of(item), (bytes.get(of(item)) ?? 0) + item.decoded);
  return [...bytes].sort((a, b) => b[1] - a[1]).map(([value]) => value);
}

function most(bytes: Map<string, number>): string {
  let [found, best] = ["", -1];
  for (const [value, size] of bytes) if (size > best) [found, best] = [value, size];
  return found;
}
