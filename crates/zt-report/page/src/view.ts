// The parts of a page, and what they do to each other.

import type { Item } from "./data";
import { drawDetail } from "./detail";
import { h } from "./dom";
import { drawLayers } from "./layers";
import type { Source } from "./source";
import { drawSummary } from "./summary";
import { drawTable } from "./table";
import { human, plural, printable, title } from "./text";
import { drawTreemap } from "./treemap";

/** Objects of so many bytes are read without a question: from a disk, and from a network. */
const [ON_DISK, ON_NETWORK] = [2 ** 25, 2 ** 16];

/** Ends what listens to the window for the page that was drawn last. */
let gone = new AbortController();

/** Draws all that `source` has, and draws anew what is read later. */
export function draw(main: Element, source: Source) {
  const { items } = source.report;
  gone.abort();
  const { signal } = (gone = new AbortController());
  const detail = drawDetail(source, changed);
  const table = drawTable(items, select, signal);
  const map = drawTreemap(items, select);
  let summary = drawSummary(source.report, select);
  let layers = drawLayers(items, select);
  main.replaceChildren(
    summary,
    h("div", { class: "tasks", hidden: !source.readAll && !source.save }, reading(), saving()),
    map.section,
    layers,
    h("div", { class: "columns" }, table.section, detail.panel),
    h("footer", {}, source.footer),
  );
  table.start();
  // The table is there at once; the map of many objects takes longer.
  requestAnimationFrame(() =>
    setTimeout(() => {
      if (signal.aborted) return;
      map.draw();
      open();
    }),
  );

  let width = window.innerWidth;
  window.addEventListener(
    "resize",
    () => {
      if (window.innerWidth !== width) map.draw();
      width = window.innerWidth;
    },
    { signal },
  );
  window.addEventListener("hashchange", open, { signal });

  let timer: number | undefined;
  let pause = 300;

  /** The figures of some objects are other ones. */
  function changed() {
    if (signal.aborted) return;
    table.changed();
    timer ??= window.setTimeout(() => {
      if (signal.aborted) return;
      const start = performance.now();
      const [newSummary, newLayers] = [drawSummary(source.report, select), drawLayers(items, select)];
      // What was opened stays open.
      const open = new Set([...summary.querySelectorAll("details[open] > summary")].map((it) => it.textContent!.replace(/:.*/, "")));
      for (const it of newSummary.querySelectorAll("summary")) {
        if (open.has(it.textContent!.replace(/:.*/, ""))) it.parentElement!.setAttribute("open", "");
      }
      summary.replaceWith(newSummary);
      layers.replaceWith(newLayers);
      [summary, layers] = [newSummary, newLayers];
      map.changed();
      timer = undefined;
      // Of many objects the map takes long. The page is free for most of the time.
      pause = 300 + 10 * (performance.now() - start);
    }, pause);
  }

  /** Reads the values of all objects, where they are not here. */
  function reading(): Node {
    const { readAll } = source;
    if (!readAll) return document.createDocumentFragment();
    let stop: AbortController | undefined;
    const bytes = items.reduce((all, item) => all + item.stored, 0);
    const label = `Read the values of ${items.length === 1 ? "the object" : `all ${items.length.toLocaleString("en")} objects`}, ${human(bytes)}`;
    const said = h("span", { role: "status" });
    const button = h("button", { type: "button", click: () => (stop ? stop.abort() : start()) }, label);
    const start = async () => {
      const mine = (stop = new AbortController());
      signal.addEventListener("abort", () => mine.abort());
      button.textContent = "Stop";
      let rest = items.length;
      try {
        await readAll((done) => {
          rest = items.length - done;
          said.textContent = `${plural(done, "object", "objects")} of ${items.length.toLocaleString("en")} read`;
          changed();
        }, mine.signal);
      } catch (error) {
        said.textContent = printable((error as Error).message);
      }
      if (!signal.aborted) table.refine(true);
      button.textContent = label;
      button.hidden = rest === 0;
      stop = undefined;
    };
    if (bytes <= (source.isCheap ? ON_DISK : ON_NETWORK)) start();
    return h("span", {}, button, " ", said);
  }

  /** Writes the file as another kind, where there is an engine. */
  function saving(): Node {
    const { save } = source;
    if (!save) return document.createDocumentFragment();
    const kinds = ["safetensors", "gguf", "zt"];
    const choice = h("select", { "aria-label": "Kind to save as" }, ...kinds.map((kind) => h("option", { value: kind }, kind)));
    const said = h("span", { role: "status" });
    const start = async () => {
      said.textContent = "Converting …";
      try {
        const { blob, warnings } = await save(choice.value);
        const name = title(source.report.files[source.report.files.length - 1].path).replace(/(\.safetensors)?\.\w+$/, "");
        const link = h("a", { href: URL.createObjectURL(blob), download: `${name || "model"}.${choice.value}` });
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
        said.textContent = [human(blob.size), ...warnings.slice(0, 3).map(printable)].join("; ");
      } catch (error) {
        said.textContent = printable((error as Error).message);
      }
    };
    return h("span", {}, h("button", { type: "button", click: start }, "Save as"), " ", choice, " ", said);
  }

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

  /** Shows the object that the address names, or else the one that changed most, or has problems, or is the largest. */
  function open() {
    let name = location.hash.slice(1);
    try {
      name = decodeURIComponent(name);
    } catch {
      // An address that no link of this page has: a percent sign alone.
    }
    const weight = (item: Item) => item.change?.relative ?? (item.change ? 0 : item.decoded * (item.problems.length > 0 ? 1e20 : 1));
    const item = items.find((item) => item.name === name);
    const first = () => items.reduce((most, item) => (weight(item) > weight(most) ? item : most), items[0]);
    if (item) show(item);
    // Reading may take long, and someone pays for it.
    else if (items.length > 0 && !source.readAll) show(first());
  }
}
