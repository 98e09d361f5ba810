// One object: its figures, its histogram, its levels, its matrix.

import { scaleLinear, scaleSymlog } from "d3-scale";

import type { Delta, Details, Histogram, Item } from "./data";
import { h, s } from "./dom";
import { drawPicture } from "./picture";
import type { Source } from "./source";
import { change } from "./table";
import { abridged, digits, human, percent, plural, printable, shape } from "./text";

/** `changed` is called when an item has new figures. */
export function drawDetail(source: Source, changed: () => void) {
  const panel = h("section", { class: "detail", "aria-label": "Chosen object", tabindex: -1 });
  let isLog = false;
  let shown: Item | undefined;

  function show(item: Item, isWhole = false) {
    shown = item;
    const found = source.details(item, isWhole);
    if (!(found instanceof Promise)) return draw(item, found);
    draw(item, {}, h("p", { class: "caption", role: "status" }, "Reading values …"));
    const done = (found: Details, ...more: Node[]) => {
      changed();
      if (shown === item) draw(item, found, ...more);
    };
    found.then(done, (error) => done({}, h("p", { class: "fault", role: "alert" }, printable(error.message))));
  }

  /** `more` is shown in place of a histogram. */
  function draw(item: Item, details: Details, ...more: Node[]) {
    // A long name is broken after its dots.
    const parts = abridged(item.name, 400).split(/(?<=[./])/).flatMap((part) => [part, h("wbr")]);
    const name = h("h3", {}, h("bdi", {}, ...parts));
    const problems = item.problems.map((problem) => h("li", {}, printable(problem)));
    panel.replaceChildren(
      name,
      problems.length > 0 ? h("ul", { class: "problems" }, ...problems) : "",
      facts(item, details.delta),
      ...unread(item, details),
      ...(more.length > 0 ? more : [...histogram(item, details), ...levels(details), ...picture(item, details)]),
    );
  }

  function unread(item: Item, details: Details): Node[] {
    const { unread } = details;
    if (unread === undefined) return [];
    const of = "a sample of 256 KiB. ";
    const figures = item.isSample ? `The figures are of ${of}` : details.histogram ? `The histogram is of ${of}` : "";
    const what = item.count === undefined ? "Nothing was read of its values. " : figures;
    const read = h("button", { type: "button", click: () => show(item, true) }, `Read all ${human(unread)}`);
    return [h("p", { class: "caption" }, what, read)];
  }

  const left = (item: Item, what: string) => h("p", { class: "caption" }, source.missing(item, what));

  function histogram(item: Item, { histogram: now, before }: Details): Node[] {
    if (now === undefined) return item.count ? [left(item, "histogram")] : [];
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
      bars("Histogram", now, before, isLog),
      h(
        "p",
        { class: "caption" },
        `${bins} of width ${digits(now.width)} = ${power(now.width)}. `,
        ...(isPair ? [h("i", { class: "key before" }), " first file ", h("i", { class: "key now" }), " second file. "] : []),
        h("label", {}, toggle, " logarithmic counts"),
      ),
    ];
  }

  function levels({ levels: found }: Details): Node[] {
    if (found === undefined) return [];
    const { levels, scales } = found;
    const used = plural(levels.counts.filter((count) => count > 0).length, "level", "levels");
    const range = `${levels.start} to ${levels.start + levels.counts.length - 1}`;
    const [min, max, mean] = scales ?? [];
    return [
      h("h4", {}, "Levels before scaling"),
      bars("Levels", levels, undefined, isLog),
      h("p", { class: "caption" }, `${used} in use, ${range}. `, scales !== null && `Scales: ${digits(min)} to ${digits(max)}, mean ${digits(mean)}.`),
    ];
  }

  function picture(item: Item, { picture: found }: Details): Node[] {
    if (found === undefined) return item.shape.length > 1 && item.count ? [left(item, "picture")] : [];
    return drawPicture(item, found);
  }

  panel.append(h("p", { class: "caption" }, "Choose an object in the map or in the table."));
  return { panel, show };
}

function facts(item: Item, delta: Delta | undefined) {
  const rows: [string, string][] = [
    ["type", item.type],
    ["shape", shape(item.shape)],
    ["format", [item.format, item.encoding].filter((text) => text !== "").join(", ")],
    ["bytes", human(item.decoded) + (item.stored === item.decoded ? "" : `, stored in ${human(item.stored)}`)],
  ];
  if (delta) {
    const parts = [...delta.roles, ...(delta.attributes ? ["attributes"] : [])];
    rows.push(["changes", parts.length > 0 ? parts.join(", ") : "the name"]);
    if (delta.base !== null) rows.push(["name in the base", delta.base]);
    if (delta.stretches) {
      const [changed, all] = delta.stretches;
      rows.push(["blocks that change", `${changed.toLocaleString("en")} of ${all.toLocaleString("en")}`]);
    }
  }
  if (item.change) {
    const { status, maxAbs, cosine, different } = item.change;
    rows.push(["status", status]);
    if (status === "changed") {
      rows.push(
        ["relative change", change(item)],
        ["max abs change", digits(maxAbs)],
        ["cosine", cosine === null ? "–" : cosine.toFixed(7)],
        ["different", `${different.toLocaleString("en")} (${percent(different / (item.count || 1))})`],
      );
    }
  }
  if (item.count !== undefined) {
    rows.push(
      ["values", item.count.toLocaleString("en")],
      ["min", digits(item.min)],
      ["max", digits(item.max)],
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
function bars(label: string, now: Histogram, before: Histogram | undefined, isLog: boolean) {
  const all = before === undefined ? [now] : [before, now];
  const edges = all.flatMap(({ start, width, counts }) => [start * width, (start + counts.length) * width]);
  const x = scaleLinear([Math.min(...edges), Math.max(...edges)], [8, WIDTH - 8]);
  const narrowest = Math.min(...all.map(({ width }) => width));
  const heights = all.map(({ width, counts }) => counts.map((count) => (count * narrowest) / width));
  const most = Math.max(...heights.flat());
  const y = (isLog ? scaleSymlog() : scaleLinear()).domain([0, most]).range([BASE, 8]);
  const chart = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": label });
  all.forEach(({ start, width, counts }, place) => {
    const kind = all.length > 1 && place === 0 ? "before" : "now";
    const group = s("g", { class: kind });
    counts.forEach((count, at) => {
      if (count === 0) return;
      const [left, right] = [x((start + at) * width), x((start + at + 1) * width)];
      // One value among millions is seen.
      const top = Math.min(y(heights[place][at]), BASE - 1);
      const [from, to] = [digits((start + at) * width), digits((start + at + 1) * width)];
      const label = `${width === 1 ? from : `${from} to ${to}`}: ${count.toLocaleString("en")}`;
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
