// The change of each layer, in order: where did a fine-tune move?

import { scaleLinear, scaleLog, scaleOrdinal } from "d3-scale";
import { schemeTableau10 } from "d3-scale-chromatic";

import type { Item } from "./data";
import { h, s } from "./dom";
import { abridged, digits, percent } from "./text";

const WIDTH = 900;
const HEIGHT = 190;
const [LEFT, BASE] = [84, HEIGHT - 34];

/** The most lines. Others have fewer layers. */
const LINES = 6;

interface Line {
  /** The part of the names before the number: `model.layers`. */
  stem: string;
  points: { layer: number; relative: number; all: Item[] }[];
}

/** Hidden if no names have numbers, or if nothing changed. */
export function drawLayers(items: Item[], onSelect: (item: Item) => void): HTMLElement {
  const lines = linesOf(items);
  const changes = lines.flatMap(({ points }) => points.flatMap(({ all }) => all.map(({ change }) => change!.relative!)));
  const positive = changes.filter((change) => change > 0).sort((a, b) => a - b);
  if (positive.length === 0) return h("section", { hidden: true });
  const most = positive[positive.length - 1];
  // One outlier would flatten everything else.
  const isLog = most > 30 * positive[positive.length >> 1];
  const least = Math.max(positive[0], most / 1e6);
  const layers = lines.flatMap(({ points }) => [points[0].layer, points[points.length - 1].layer]);
  const x = scaleLinear([Math.min(...layers), Math.max(...layers)], [LEFT + 12, WIDTH - 12]);
  const linear = scaleLinear([0, most], [BASE, 10]).nice(4);
  const log = scaleLog([least, most], [BASE, 10]).nice();
  const y = (change: number) => (isLog ? log(Math.max(change, log.domain()[0])) : linear(change));
  const chart = s("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: "chart wide",
    role: "img",
    "aria-label": `Relative change by layer: ${lines
      .flatMap(({ stem, points }) => points.map((point) => `${stem} ${point.layer} ${percent(point.relative)}`))
      .join(", ")}`.slice(0, 2000),
  });
  const ticks = isLog ? log.ticks(4).filter((tick) => Number.isInteger(Math.round(1e6 * Math.log10(tick)) / 1e6)) : linear.ticks(4);
  for (const tick of ticks) {
    chart.append(
      s("line", { class: "rule", x1: LEFT, x2: WIDTH, y1: y(tick), y2: y(tick) }),
      s("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, `${digits(100 * tick)} %`),
    );
  }
  for (const tick of x.ticks(12).filter(Number.isInteger)) {
    chart.append(s("text", { x: x(tick), y: BASE + 17, "text-anchor": "middle" }, `${tick}`));
  }
  chart.append(s("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 2, "text-anchor": "middle" }, "layer"));
  const colors = scaleOrdinal(lines.map(({ stem }) => stem), schemeTableau10);
  const isOne = lines.length === 1;
  for (const { stem, points } of lines) {
    const color = isOne ? "" : colors(stem);
    for (const { layer, all } of points) {
      for (const item of all) {
        const label = `${abridged(item.name, 120)}: ${percent(item.change!.relative!)}`;
        const dot = { class: "dot", cx: x(layer), cy: y(item.change!.relative!), r: 3, click: () => onSelect(item) };
        const circle = s("circle", dot, s("title", {}, label));
        // The page allows no attributes of style.
        circle.style.fill = color;
        chart.append(circle);
      }
    }
    const path = points.map((point) => `${x(point.layer)},${y(point.relative)}`);
    const line = s("polyline", { class: "line", points: path.join(" ") });
    line.style.stroke = color;
    chart.append(line);
  }
  const names = lines.map(({ stem }) => {
    const key = h("i", { class: "key" });
    key.style.background = isOne ? "" : colors(stem);
    return h("span", {}, !isOne && key, " ", h("bdi", {}, abridged(stem, 60) || "no name"));
  });
  return h(
    "section",
    { "aria-labelledby": "layers" },
    h("h2", { id: "layers" }, "Change by layer"),
    chart,
    h(
      "p",
      { class: "caption" },
      "The norm of the difference over the norm of the first values: the line for a whole layer, a dot for each object. ",
      isLog && "The axis is logarithmic, and what did not change is at its foot. ",
      "Layers are the numbers after ",
      ...names.flatMap((name, at) => (at === 0 ? [name] : [", ", name])),
      ".",
    ),
  );
}

/** The stems with several numbers. Most are lists of layers, which have the most. */
function linesOf(items: Item[]): Line[] {
  const stems = new Map<string, Map<number, Item[]>>();
  for (const item of items) {
    // Few names have more than one number, and then the first is the layer.
    const found = item.name.match(/^(.*?)[./_]?(?<![^./_])(\d{1,5})(?:[./_]|$)/);
    if (!found || typeof item.change?.relative !== "number") continue;
    const layers = stems.get(found[1]) ?? new Map<number, Item[]>();
    const layer = Number(found[2]);
    if (!layers.get(layer)?.push(item)) layers.set(layer, [item]);
    stems.set(found[1], layers);
  }
  const lines = [...stems].filter(([, layers]) => layers.size > 1).sort((a, b) => b[1].size - a[1].size);
  return lines.slice(0, LINES).map(([stem, layers]) => ({
    stem,
    points: [...layers].sort((a, b) => a[0] - b[0]).map(([layer, all]) => ({ layer, relative: joined(all), all })),
  }));
}

function joined(items: Item[]): number {
  const norm = items.reduce((all, { change }) => all + change!.norm ** 2, 0);
  const apart = items.reduce((all, { change }) => all + (change!.relative! * change!.norm) ** 2, 0);
  return norm > 0 ? Math.sqrt(apart / norm) : 0;
}
