// One object: its figures, its histogram, its matrix.

import { scaleLinear, scaleSymlog } from "d3-scale";
import { color as parsed } from "d3-color";

import { BAD, magnitude, signed } from "./color";
import type { Histogram, Item, Picture, Report } from "./data";
import { h, s } from "./dom";
import { change } from "./table";
import { abridged, digits, human, percent, plural, printable, shape } from "./text";

export function drawDetail(report: Report) {
  const panel = h("section", { class: "detail", "aria-label": "Chosen object", tabindex: -1 });
  let isLog = false;
  let shown: Item | undefined;

  function show(item: Item) {
    shown = item;
    // A long name is broken after its dots.
    const parts = abridged(item.name, 400).split(/(?<=[./])/).flatMap((part) => [part, h("wbr")]);
    const name = h("h3", {}, h("bdi", {}, ...parts));
    const problems = item.problems.map((problem) => h("li", {}, printable(problem)));
    panel.replaceChildren(
      name,
      problems.length > 0 ? h("ul", { class: "problems" }, ...problems) : "",
      facts(item),
      ...histogram(item),
      ...picture(item),
    );
  }

  function histogram(item: Item): Node[] {
    const [now, before] = [report.histograms.get(item.at), report.before.get(item.at)];
    if (now === undefined) return item.count ? [left("histogram")] : [];
    const toggle = h("input", {
      type: "checkbox",
      id: "log",
      change: () => {
        isLog = toggle.checked;
        if (shown) show(shown);
        panel.querySelector<HTMLElement>("#log")?.focus();
      },
    });
    toggle.checked = isLog;
    const bins = plural(now.counts.length, "bin", "bins");
    const isPair = before !== undefined;
    return [
      h("h4", {}, "Histogram"),
      bars(now, before, isLog),
      h(
        "p",
        { class: "caption" },
        `${bins} of width ${digits(now.width)} = ${power(now.width)}. `,
        ...(isPair ? [h("i", { class: "key before" }), " first file ", h("i", { class: "key now" }), " second file. "] : []),
        h("label", {}, toggle, " logarithmic counts"),
      ),
    ];
  }

  function picture(item: Item): Node[] {
    const found = report.picture(item.at);
    if (found === undefined) return item.shape.length > 1 && item.count ? [left("picture")] : [];
    return drawPicture(item, found);
  }

  panel.append(h("p", { class: "caption" }, "Choose an object in the map or in the table."));
  return { panel, show };
}

const left = (what: string) =>
  h("p", { class: "caption" }, `The ${what} is left out to keep the page small; zt report --detail keeps all.`);

function facts(item: Item) {
  const rows: [string, string][] = [
    ["type", item.type],
    ["shape", shape(item.shape)],
    ["format", [item.format, item.encoding].filter((text) => text !== "").join(", ")],
    ["bytes", human(item.decoded) + (item.stored === item.decoded ? "" : `, stored in ${human(item.stored)}`)],
  ];
  if (item.change) {
    const { status, maxAbs, cosine, different } = item.change;
    rows.push(["status", status]);
    if (status === "changed") {
      rows.push(
        ["relative change", change(item)],
        ["greatest change", digits(maxAbs)],
        ["cosine", cosine === null ? "–" : cosine.toFixed(7)],
        ["different values", different.toLocaleString("en")],
      );
    }
  }
  if (item.count !== undefined) {
    rows.push(
      ["values", item.count.toLocaleString("en")],
      ["least", digits(item.min)],
      ["greatest", digits(item.max)],
      ["mean", digits(item.mean)],
      ["deviation", digits(item.std)],
      ["zeros", item.count > 0 ? `${item.zeros.toLocaleString("en")} (${percent(item.zeros / item.count)})` : "0"],
    );
    if (item.nan > 0) rows.push(["NaN", item.nan.toLocaleString("en")]);
    if (item.inf > 0) rows.push(["infinities", item.inf.toLocaleString("en")]);
    if (item.deadRows > 0) rows.push(["rows of zeros", item.deadRows.toLocaleString("en")]);
    if (item.deadColumns > 0) rows.push(["columns of zeros", item.deadColumns.toLocaleString("en")]);
  }
  return h("dl", {}, ...rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, abridged(value, 200)))));
}

const WIDTH = 420;
const HEIGHT = 150;
const BASE = HEIGHT - 22;

/** Counts by value. Two histograms may have bins of two widths, so what is drawn of them is their density. */
function bars(now: Histogram, before: Histogram | undefined, isLog: boolean) {
  const all = before === undefined ? [now] : [before, now];
  const edges = all.flatMap(({ start, width, counts }) => [start * width, (start + counts.length) * width]);
  const x = scaleLinear([Math.min(...edges), Math.max(...edges)], [8, WIDTH - 8]);
  const narrowest = Math.min(...all.map(({ width }) => width));
  const heights = all.map(({ width, counts }) => counts.map((count) => (count * narrowest) / width));
  const most = Math.max(...heights.flat());
  const y = (isLog ? scaleSymlog() : scaleLinear()).domain([0, most]).range([BASE, 8]);
  const chart = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": "Histogram" });
  all.forEach(({ start, width, counts }, place) => {
    const kind = all.length > 1 && place === 0 ? "before" : "now";
    const group = s("g", { class: kind });
    counts.forEach((count, at) => {
      if (count === 0) return;
      const [left, right] = [x((start + at) * width), x((start + at + 1) * width)];
      // One value among millions is seen.
      const top = Math.min(y(heights[place][at]), BASE - 1);
      const label = `${digits((start + at) * width)} to ${digits((start + at + 1) * width)}: ${count.toLocaleString("en")}`;
      group.append(
        s(
          "rect",
          { x: left, y: top, width: Math.max(right - left - 0.5, 0.75), height: BASE - top },
          s("title", {}, label),
        ),
      );
    });
    chart.append(group);
  });
  chart.append(s("line", { class: "axis", x1: 8, x2: WIDTH - 8, y1: BASE, y2: BASE }));
  for (const tick of x.ticks(6)) {
    chart.append(
      s("line", { class: "axis", x1: x(tick), x2: x(tick), y1: BASE, y2: BASE + 4 }),
      s("text", { x: x(tick), y: HEIGHT - 6, "text-anchor": "middle" }, digits(tick)),
    );
  }
  return chart;
}

const power = (width: number) => `2^${Math.round(Math.log2(width))}`;

function drawPicture(item: Item, picture: Picture): Node[] {
  const { rows, columns, kind, low, high, bytes } = picture;
  const isExact = kind === "element";
  const canvas = h("canvas", { width: columns, height: rows, class: "picture", role: "img", "aria-label": "Matrix" });
  canvas.style.aspectRatio = `${columns} / ${rows}`;
  canvas.style.maxWidth = `${Math.max(columns * 8, Math.min(columns * 24, 240))}px`;
  const reach = Math.max(Math.abs(low), Math.abs(high));
  const value = (byte: number) => low + ((high - low) * byte) / 254;
  const colorOf = (number: number) => (isExact ? signed(reach === 0 ? 0 : number / reach) : magnitude((number - low) / (high - low || 1)));
  const palette = Array.from({ length: 256 }, (_, byte) => parsed(byte === 255 ? BAD : colorOf(value(byte)))!.rgb());
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(columns, rows);
  bytes.forEach((byte, at) => {
    const { r, g, b } = palette[byte];
    image.data.set([r, g, b, 255], 4 * at);
  });
  context.putImageData(image, 0, 0);
  const [high1, wide1] = [item.shape[0], item.shape.slice(1).reduce((all, extent) => all * extent, 1)];
  const what = isExact
    ? "Each pixel is one element: blue is below 0, red above."
    : `Each of ${rows}×${columns} pixels is the ${kind === "density" ? "share of stored values" : "mean absolute value"} of up to ${Math.ceil(high1 / rows)}×${Math.ceil(wide1 / columns)} elements.`;
  const from = isExact ? -reach : low;
  const stops = Array.from({ length: 24 }, (_, at) => from + ((high - from) * at) / 23);
  const exact = isExact ? Array.from({ length: 24 }, (_, at) => -reach + (2 * reach * at) / 23) : stops;
  const ramp = exact.map((stop) => {
    const mark = h("i");
    mark.style.background = colorOf(stop);
    return mark;
  });
  const under = h("span", { class: "under" });
  canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => {
    const column = Math.min(columns - 1, Math.floor((offsetX / canvas.clientWidth) * columns));
    const row = Math.min(rows - 1, Math.floor((offsetY / canvas.clientHeight) * rows));
    const byte = bytes[row * columns + column];
    const range = (at: number, blocks: number, all: number) => {
      const [first, last] = [Math.ceil((at * all) / blocks), Math.ceil(((at + 1) * all) / blocks) - 1];
      return first === last ? `${first}` : `${first}–${last}`;
    };
    const place = `row ${range(row, rows, high1)}, column ${range(column, columns, wide1)}`;
    under.textContent = `${place}: ${byte === 255 ? "not finite" : digits(value(byte))}`;
  });
  return [
    h("h4", {}, `Matrix, ${high1}×${wide1}`),
    canvas,
    h("div", { class: "legend" }, digits(exact[0]), h("span", { class: "ramp" }, ...ramp), digits(exact[23]), under),
    h("p", { class: "caption" }, what),
  ];
}
