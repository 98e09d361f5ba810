// The table of all objects. Only the rows in sight are elements.

import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";

import type { Item } from "./data";
import { h } from "./dom";
import { abridged, digits, human, narrow, percent, plural, shape } from "./text";

const ROW = 28;
/** Rows in sight. */
const ROWS = 21;
/** Rows that are printed. */
const PRINTED = 2000;

interface Column {
  key: string;
  label: string;
  text(item: Item): string;
  /** What it is sorted by: the largest first for numbers. */
  value?(item: Item): number | undefined;
  isNumber?: boolean;
  /** Whether narrow screens leave it out. */
  isExtra?: boolean;
}

const NAME: Column = { key: "name", label: "Name", text: (item) => abridged(item.name, 300) };
const TYPE: Column = { key: "type", label: "Type", text: (item) => abridged(item.type, 24) };
const SHAPE: Column = { key: "shape", label: "Shape", text: (item) => abridged(shape(item.shape), 60) };
const number = (key: string, label: string, value: Column["value"], text: Column["text"], isExtra = false): Column => ({
  key,
  label,
  value,
  text,
  isExtra,
  isNumber: true,
});
const SIZE = number("size", "Size", (item) => item.decoded, (item) => human(item.decoded));
const figure = (key: "min" | "max" | "std", label: string, isExtra: boolean) =>
  number(key, label, (item) => (item[key] === undefined ? undefined : Number(item[key])), (item) => narrow(item[key]), isExtra);

const OF_ONE: Column[] = [
  NAME,
  TYPE,
  SHAPE,
  SIZE,
  figure("min", "Min", true),
  figure("max", "Max", true),
  figure("std", "Deviation", false),
  number("zeros", "Zeros", zeros, (item) => (item.count ? percent(zeros(item)!) : "–")),
  number("problems", "Problems", (item) => item.problems.length, (item) => abridged(item.problems.join(", "), 120)),
];

const OF_TWO: Column[] = [
  NAME,
  number("status", "Status", (item) => STATUS[item.change!.status], (item) => item.change!.status),
  number("change", "Change", (item) => item.change!.relative ?? undefined, (item) => change(item)),
  number("greatest", "Max abs", (item) => item.change!.maxAbs ?? undefined, (item) => digits(item.change!.maxAbs), true),
  number("cosine", "Cosine", (item) => item.change!.cosine ?? undefined, (item) => cosine(item), true),
  TYPE,
  SHAPE,
  SIZE,
  OF_ONE[OF_ONE.length - 1],
];

const STATUS = { unread: -1, same: 0, changed: 1, incomparable: 2, removed: 3, added: 4 };

/** The order of a comparison. It is no column. */
const FIRST = number("first", "what changed", (item) => {
  const { status, relative } = item.change!;
  const more = relative === null || relative === undefined ? 0 : relative / (1 + relative);
  return { changed: 4 + more, incomparable: 3, added: 2, removed: 1, unread: 0, same: item.type.includes(" → ") ? -1 : -2 }[status];
}, () => "");

function zeros(item: Item): number | undefined {
  return item.count ? item.zeros / item.count : undefined;
}

export const change = (item: Item) => {
  const relative = item.change?.relative;
  return relative === null || relative === undefined ? "–" : relative === 0 ? "0" : percent(relative);
};

/** Cosines of what was tuned differ from 1 in late digits. */
const cosine = (item: Item) => {
  const value = item.change?.cosine;
  return value === null || value === undefined ? "–" : value.toFixed(5);
};

export function drawTable(items: Item[], onSelect: (item: Item) => void, gone: AbortSignal) {
  const isPair = items.some((item) => item.change);
  const columns = isPair ? OF_TWO : OF_ONE;
  const orders = isPair ? [FIRST, ...columns] : columns;
  let order: number[] = items.map((_, at) => at);
  let places: number[] | undefined;
  let sorted = { key: isPair ? FIRST.key : "", isReversed: false };
  let chosen: number | undefined;
  const sorts = new Map<string, Float64Array>();
  let lower: string[] | undefined;

  const search = h("input", { type: "search", id: "search", placeholder: "Search names, types", input: () => refine() });
  const filter = h(
    "select",
    { id: "filter", "aria-label": "Which objects", change: () => refine() },
    h("option", { value: "all" }, "all objects"),
    h("option", { value: "problems" }, "with problems"),
    isPair && h("option", { value: "changed" }, "not the same"),
  );
  const count = h("span", { class: "count", role: "status" });
  const body = h("div", { role: "rowgroup", class: "rows" });
  const heads = columns.map((column) =>
    h(
      "div",
      { role: "columnheader", class: classes(column), "aria-sort": "none" },
      h("button", { type: "button", tabindex: -1, click: () => sortBy(column) }, column.label),
    ),
  );
  const grid = h(
    "div",
    {
      role: "grid",
      class: `grid ${isPair ? "pair" : ""}`,
      tabindex: 0,
      "aria-label": "Objects. Arrow keys move; the letters n, t and s sort by name, type and size.",
      keydown: (event: KeyboardEvent) => press(event),
    },
    h("div", { role: "rowgroup", class: "head" }, h("div", { role: "row", "aria-rowindex": 1 }, ...heads)),
    body,
  );
  grid.style.setProperty("--name", `${nameWidth(items)}px`);
  const printed = h("table", { class: "printed" });
  const section = h(
    "section",
    { "aria-labelledby": "objects", class: "objects" },
    h(
      "div",
      { class: "bar" },
      h("h2", { id: "objects" }, "Objects"),
      h("label", { for: "search", class: "hidden" }, "Search"),
      search,
      filter,
      sortChoice(),
      count,
    ),
    grid,
    printed,
  );

  const virtual = new Virtualizer<HTMLElement, HTMLElement>({
    count: items.length,
    getScrollElement: () => grid,
    estimateSize: () => ROW,
    overscan: 6,
    // The row of headings, which stays in sight.
    scrollMargin: ROW,
    scrollPaddingStart: ROW,
    initialRect: { width: 800, height: 560 },
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => draw(),
  });

  function draw() {
    body.style.height = `${virtual.getTotalSize()}px`;
    body.replaceChildren(
      ...virtual.getVirtualItems().map(({ index, start }) => {
        const item = items[order[index]];
        const isChosen = item.at === chosen;
        const row = h(
          "div",
          {
            role: "row",
            id: `row-${item.at}`,
            "aria-rowindex": index + 2,
            "aria-selected": `${isChosen}`,
            class: item.problems.length > 0 ? "odd" : "",
            click: () => onSelect(item),
          },
          ...columns.map((column) => cell(column, item)),
        );
        row.style.transform = `translateY(${start - ROW}px)`;
        return row;
      }),
    );
    const row = chosen !== undefined && document.getElementById(`row-${chosen}`);
    if (row) grid.setAttribute("aria-activedescendant", row.id);
    else grid.removeAttribute("aria-activedescendant");
  }

  function cell(column: Column, item: Item) {
    const text = column.text(item);
    const kind = column.key === "status" ? ` ${item.change!.status}` : "";
    return h(
      "div",
      { role: "gridcell", class: classes(column) + kind, title: column.key === "name" || text.length > 12 ? text : undefined },
      column.key === "name" ? h("bdi", {}, text) : text,
    );
  }

  /** Orders and chooses the rows. It begins at the first one, if the user did not stay. */
  function refine(isSame = false) {
    const wanted = search.value.trim().toLowerCase();
    lower ??= items.map((item) => `${item.name}\n${item.type}\n${item.format}`.toLowerCase());
    const all = sorted.key === "" ? items.map((_, at) => at) : ordered();
    const which = filter.value;
    order = all.filter((at) => {
      const item = items[at];
      if (which === "problems" && item.problems.length === 0) return false;
      if (which === "changed" && item.change?.status === "same") return false;
      return wanted === "" || lower![at].includes(wanted);
    });
    places = undefined;
    virtual.setOptions({ ...virtual.options, count: order.length });
    grid.setAttribute("aria-rowcount", `${order.length + 1}`);
    const of = order.length === items.length ? "" : ` of ${items.length.toLocaleString("en")}`;
    count.textContent = plural(order.length, "object", "objects") + of;
    // It fills the space beside a long panel.
    grid.style.minHeight = `${Math.min(order.length + 1, ROWS) * ROW + 2}px`;
    grid.style.maxHeight = `${(order.length + 1) * ROW + 2}px`;
    if (!isSame) virtual.scrollToOffset(0);
    virtual._willUpdate();
    draw();
  }

  function sortChoice() {
    const choice = h(
      "select",
      {
        id: "sort",
        "aria-label": "Sort",
        change: () => {
          const column = orders.find(({ key }) => key === choice.value);
          if (column) sortBy(column);
          else unsort();
        },
      },
      h("option", { value: "" }, "in file order"),
      ...orders.map((column) => h("option", { value: column.key }, `by ${column.label.toLowerCase()}`)),
    );
    choice.value = sorted.key;
    return choice;
  }

  function unsort() {
    sorted = { key: "", isReversed: false };
    show();
  }

  function sortBy(column: Column) {
    sorted = { key: column.key, isReversed: sorted.key === column.key && !sorted.isReversed };
    show();
  }

  function show() {
    columns.forEach((column, at) => {
      const isUp = !!column.value === sorted.isReversed;
      heads[at].setAttribute("aria-sort", column.key !== sorted.key ? "none" : isUp ? "ascending" : "descending");
    });
    (section.querySelector("#sort") as HTMLSelectElement).value = sorted.key;
    refine();
  }

  /** Places by the sorted column. Numbers come largest first, and those without one last. */
  function ordered(): number[] {
    const column = orders.find(({ key }) => key === sorted.key)!;
    const keys = keysOf(column);
    const sign = sorted.isReversed ? -1 : 1;
    return items
      .map((_, at) => at)
      .sort((a, b) => (Number.isNaN(keys[a]) ? 1 : 0) - (Number.isNaN(keys[b]) ? 1 : 0) || sign * (keys[a] - keys[b]) || a - b);
  }

  function keysOf(column: Column): Float64Array {
    let keys = sorts.get(column.key);
    if (keys === undefined) {
      const { value } = column;
      const text = column === NAME ? (item: Item) => item.name : column.text;
      keys = value ? Float64Array.from(items, (item) => -(value(item) ?? NaN)) : ranks(items.map(text));
      sorts.set(column.key, keys);
    }
    return keys;
  }

  function move(to: number) {
    const place = Math.max(0, Math.min(order.length - 1, to));
    if (order.length > 0) onSelect(items[order[place]]);
  }

  function press(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = chosen === undefined ? -1 : placeOf(chosen);
    const page = Math.max(1, Math.floor(grid.clientHeight / ROW) - 2);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: order.length - 1,
    };
    const key = { n: "name", t: "type", s: "size" }[event.key];
    if (event.key in steps) move(steps[event.key]);
    else if (key !== undefined) sortBy(columns.find((column) => column.key === key)!);
    else return;
    event.preventDefault();
  }

  function placeOf(item: number): number {
    if (places === undefined) {
      places = new Array(items.length).fill(-1);
      order.forEach((at, place) => (places![at] = place));
    }
    return places[item];
  }

  const print = () => {
    const row = (item: Item) => h("tr", {}, ...columns.map((column) => h("td", {}, column.text(item))));
    const more = order.length - PRINTED;
    printed.replaceChildren(
      h("thead", {}, h("tr", {}, ...columns.map((column) => h("th", {}, column.label)))),
      h("tbody", {}, ...order.slice(0, PRINTED).map((at) => row(items[at]))),
      ...(more > 0 ? [h("caption", {}, `${plural(more, "object", "objects")} more are not printed`)] : []),
    );
  };
  window.addEventListener("beforeprint", print, { signal: gone });

  return {
    section,
    refine,
    /** Once the section is in the page. */
    start() {
      virtual._didMount();
      refine();
      // Natural order takes the longest to find.
      const idle = window.requestIdleCallback ?? ((run: () => void) => setTimeout(run, 200));
      for (const column of columns) idle(() => keysOf(column));
    },
    /** The figures of some objects are other ones. */
    changed() {
      sorts.clear();
      draw();
    },
    select(item: Item) {
      chosen = item.at;
      if (placeOf(item.at) < 0) {
        search.value = "";
        filter.value = "all";
        refine();
      }
      virtual.scrollToIndex(placeOf(item.at), { align: "auto" });
      draw();
    },
  };
}

/** The width of nearly all names. The few longest ones are cut. */
function nameWidth(items: Item[]): number {
  const lengths = items.map(({ name }) => name.length).sort((a, b) => a - b);
  const most = lengths[Math.floor(0.98 * (lengths.length - 1))] ?? 0;
  return Math.min(Math.max(7.2 * most + 20, 240), 720);
}

function classes(column: Column): string {
  return `${column.key} ${column.isNumber ? "number" : ""} ${column.isExtra ? "extra" : ""}`;
}

/** The ranks of texts, where `layers.2` comes before `layers.10`. */
function ranks(texts: string[]): Float64Array {
  const keys = new Map<string, string>();
  for (const text of texts) if (!keys.has(text)) keys.set(text, text.replace(/\d+/g, (digits) => digits.padStart(12, "0")));
  const sorted = [...keys].sort(([, a], [, b]) => (a < b ? -1 : a > b ? 1 : 0));
  const places = new Map(sorted.map(([text], rank) => [text, rank]));
  return Float64Array.from(texts, (text) => places.get(text)!);
}
