// The page of `zt report`: draws the data that stands beside it, and asks no one for more.

import { type Item, parse } from "./data";
import { drawDetail } from "./detail";
import { h } from "./dom";
import { drawLayers } from "./layers";
import { drawSummary } from "./summary";
import { drawTable } from "./table";
import { drawTreemap } from "./treemap";

const report = parse(document.getElementById("data")!.textContent!);
const detail = drawDetail(report);
const table = drawTable(report.items, select);
const map = drawTreemap(report.items, select);
const layers = drawLayers(report.items, select);

document.querySelector("main")!.replaceChildren(
  drawSummary(report),
  map.section,
  ...(layers ? [layers] : []),
  h("div", { class: "columns" }, table.section, detail.panel),
  h("footer", {}, `Made by ${report.program}. This page sends nothing and loads nothing.`),
);
table.start();
// The table is there at once; the map of many objects takes longer.
requestAnimationFrame(() =>
  setTimeout(() => {
    map.draw();
    open();
  }),
);

let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth !== width) map.draw();
  width = window.innerWidth;
});
window.addEventListener("hashchange", open);

function select(item: Item) {
  const link = `#${encodeURIComponent(item.name)}`;
  if (location.hash !== link) history.replaceState(null, "", link);
  show(item);
}

function show(item: Item) {
  table.select(item);
  map.select(item);
  detail.show(item);
}

/** Shows the object that the address names, or else the one that changed most, or the largest. */
function open() {
  let name = location.hash.slice(1);
  try {
    name = decodeURIComponent(name);
  } catch {
    // An address that no link of this page has: a percent sign alone.
  }
  const weight = (item: Item) => item.change?.relative ?? (item.change ? 0 : item.decoded);
  const { items } = report;
  const item = items.find((item) => item.name === name);
  const first = () => items.reduce((most, item) => (weight(item) > weight(most) ? item : most), items[0]);
  if (items.length > 0) show(item ?? first());
}
