// The change of each layer, in order: where did a fine-tune move?

import { scaleLinear } from "d3-scale";

import type { Item } from "./data";
import { h, s } from "./dom";
import { abridged, digits, percent } from "./text";

const WIDTH = 900;
const HEIGHT = 190;
const [LEFT, BASE] = [84, HEIGHT - 34];

/** Undefined if no names have numbers, or if nothing changed. */
export function drawLayers(items: Item[], onSelect: (item: Item) => void) {
  const layers = new Map<number, Item[]>();
  for (const item of items) {
    // Few names have more than one number, and then the first is the layer.
    const layer = item.name.match(/(?:^|[./_])(\d{1,5})(?:[./_]|$)/)?.[1];
    if (layer === undefined || typeof item.change?.relative !== "number") continue;
    layers.set(Number(layer), [...(layers.get(Number(layer)) ?? []), item]);
  }
  const points = [...layers].sort((a, b) => a[0] - b[0]).map(([layer, all]) => ({ layer, relative: joined(all), all }));
  const most = Math.max(0, ...points.flatMap(({ all }) => all.map((item) => item.change!.relative!)));
  if (points.length < 2 || most === 0) return undefined;
  const x = scaleLinear([points[0].layer, points[points.length - 1].layer], [LEFT + 12, WIDTH - 12]);
  const y = scaleLinear([0, most], [BASE, 10]).nice(4);
  const chart = s("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: "chart wide",
    role: "img",
    "aria-label": `Relative change by layer: ${points.map((point) => `${point.layer} ${percent(point.relative)}`).join(", ")}`.slice(0, 2000),
  });
  for (const tick of y.ticks(4)) {
    chart.append(
      s("line", { class: "rule", x1: LEFT, x2: WIDTH, y1: y(tick), y2: y(tick) }),
      s("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, `${digits(100 * tick)} %`),
    );
  }
  for (const tick of x.ticks(12).filter(Number.isInteger)) {
    chart.append(s("text", { x: x(tick), y: BASE + 17, "text-anchor": "middle" }, `${tick}`));
  }
  chart.append(s("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 2, "text-anchor": "middle" }, "layer"));
  for (const { layer, all } of points) {
    for (const item of all) {
      const label = `${abridged(item.name, 120)}: ${percent(item.change!.relative!)}`;
      const dot = { class: "dot", cx: x(layer), cy: y(item.change!.relative!), r: 3, click: () => onSelect(item) };
      chart.append(s("circle", dot, s("title", {}, label)));
    }
  }
  const path = points.map((point) => `${x(point.layer)},${y(point.relative)}`);
  chart.append(s("polyline", { class: "line", points: path.join(" ") }));
  return h(
    "section",
    { "aria-labelledby": "layers" },
    h("h2", { id: "layers" }, "Change by layer"),
    chart,
    h(
      "p",
      { class: "caption" },
      "The norm of the difference over the norm of the first values: the line for a whole layer, a dot for each object.",
    ),
  );
}

function joined(items: Item[]): number {
  const norm = items.reduce((all, { change }) => all + change!.norm ** 2, 0);
  const apart = items.reduce((all, { change }) => all + (change!.relative! * change!.norm) ** 2, 0);
  return norm > 0 ? Math.sqrt(apart / norm) : 0;
}
