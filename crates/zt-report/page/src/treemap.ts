// The map of modules: areas are bytes.

import { hierarchy, treemap, treemapSquarify, type HierarchyRectangularNode } from "d3-hierarchy";

import { COLORINGS } from "./color";
import type { Item } from "./data";
import { h, s } from "./dom";
import { type Module, module, modules } from "./modules";
import { abridged, human, plural, printable, shape } from "./text";

const HEIGHT = 420;
const HEADER = 18;
/** Square pixels below which a module is one tile. */
const SMALLEST = 90;

/** Parts of a module that are shown whatever their size. */
const FEW = 24;

/** The number that a label begins with; NaN for others. */
const layer = ({ label }: Module) => parseInt(label.replace(/^[./]/, ""), 10);

type Tile = HierarchyRectangularNode<Module>;

export function drawTreemap(items: Item[], onSelect: (item: Item) => void) {
  // Made when it is drawn first: the table is there before.
  let root = module([], "", "");
  let shown = root;
  let tiles: Tile[] = [];
  let active = 0;
  let chosen: number | undefined;
  const names = Object.keys(COLORINGS).filter((name) => name !== "change" || items.some((item) => item.change));
  const choice = h(
    "select",
    {
      id: "coloring",
      change: () => {
        isChosen = true;
        draw();
      },
    },
    ...names.map((name) => h("option", { value: name }, LABELS[name])),
  );
  let isChosen = false;
  const legend = h("div", { class: "legend" });
  const crumbs = h("nav", { class: "crumbs", "aria-label": "Modules above" });
  const hint = h("p", { class: "hint" });
  const map = s("svg", {
    class: "treemap",
    tabindex: 0,
    role: "listbox",
    "aria-label": "Map of modules by bytes. Arrow keys move, Enter opens, Escape goes up.",
    keydown: (event: KeyboardEvent) => press(event),
    focus: () => mark(active),
  });
  const section = h(
    "section",
    { "aria-labelledby": "modules" },
    h(
      "div",
      { class: "bar" },
      h("h2", { id: "modules" }, "Modules"),
      h("label", { for: "coloring" }, "Colour by"),
      choice,
      legend,
    ),
    crumbs,
    map,
    hint,
  );

  function zoom(module: Module) {
    shown = module;
    active = 0;
    draw();
  }

  function open(tile: Tile) {
    if (tile.data.item !== undefined) onSelect(tile.data.item);
    else if (tile.data !== shown) zoom(tile.data);
  }

  function draw() {
    if (root.children.length === 0) shown = root = modules(items);
    if (!isChosen) {
      const figures = items.filter((item) => item.std !== undefined).length;
      choice.value = names.includes("change") ? "change" : 2 * figures < items.length ? "type" : "deviation";
    }
    const width = Math.max(section.clientWidth, 280);
    const coloring = COLORINGS[choice.value](items);
    map.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    // Bytes of the smallest tile. Objects without bytes have a place, too.
    const size = (module: Module) => Math.max(module.bytes, 1);
    const fewest = (size(shown) * SMALLEST) / (width * HEIGHT);
    const parts = new Map<Module, Module[]>();
    const children = (of: Module) => {
      const found = of === shown || size(of) > 4 * fewest ? visible(of, (child) => size(child) >= fewest / 2) : [];
      parts.set(of, found);
      return found;
    };
    const leaves = hierarchy(shown, children).sum((of) => (parts.get(of)!.length > 0 ? 0 : size(of)));
    // Layers of one size stand in the order of their numbers.
    leaves.sort((a, b) => (b.value ?? 0) - (a.value ?? 0) || layer(a.data) - layer(b.data) || 0);
    const layout = treemap<Module>()
      .size([width, HEIGHT])
      .tile(treemapSquarify.ratio(1.4))
      .paddingOuter(2)
      .paddingInner(1)
      .paddingTop((tile) => (tile.depth > 0 && hasHeader(tile) ? HEADER : 2))
      .round(true);
    tiles = layout(leaves)
      .descendants()
      .filter((tile) => (tile.depth > 0 || tile.data.item) && tile.x1 - tile.x0 >= 2 && tile.y1 - tile.y0 >= 2);
    map.replaceChildren(...tiles.map((tile, at) => drawn(tile, at, coloring.of(tile.data), coloring.label(tile.data))));
    drawLegend(coloring.legend, coloring.isRamp);
    drawCrumbs();
    mark(-1);
    const isOdd = shown.problems > 0 ? " A dashed red border is a problem." : "";
    hint.textContent = `Areas are bytes.${isOdd} A click on a tile shows the object, a click on a heading enlarges the module.`;
  }

  /** The parts of a module: those that are large enough, and one for all others. */
  function visible(of: Module, isLarge: (child: Module) => boolean): Module[] {
    if (of.children.length <= FEW) return of.children;
    const large = of.children.filter(isLarge);
    const small = of.children.filter((child) => !isLarge(child));
    if (small.length === 0 || (large.length === 0 && of !== shown)) return large;
    return [...large, module(small, `${small.length} more`, of.path)];
  }

  const hasHeader = (tile: Tile) => tile.y1 - tile.y0 >= 3 * HEADER && tile.x1 - tile.x0 >= 40;

  function drawn(tile: Tile, at: number, color: string, label: string): SVGElement {
    const { x0, y0, x1, y1, data } = tile;
    const [width, height] = [x1 - x0, y1 - y0];
    const isGroup = tile.children !== undefined;
    const fits = Math.floor((width - 6) / (isGroup ? 7 : 6.5));
    const own = abridged(data.label.replace(/^[./]/, "") || data.path, 80);
    const withSize = `${own} · ${human(data.bytes)}`;
    const text = s("text", { x: 4, y: 12.5 }, withSize.length <= fits ? withSize : own);
    const name = `${data.path.length > 200 ? own : printable(data.path)}, ${human(data.bytes)}, ${label}`;
    const parts = data.item === undefined ? plural(data.objects, "object", "objects") : shape(data.item.shape);
    const light = isGroup ? "" : isLight(color) ? " on-light" : " on-dark";
    const group = s(
      "g",
      {
        role: "option",
        id: `tile-${at}`,
        "aria-label": `${name}, ${parts}`,
        "aria-selected": "false",
        class: isGroup ? "module" : `tile${light}${data.problems > 0 ? " odd" : ""}`,
        transform: `translate(${x0},${y0})`,
        click: () => {
          active = at;
          open(tile);
        },
        pointerenter: () => (hint.textContent = `${name}, ${parts}`),
      },
      s("rect", { width, height, rx: 2, fill: isGroup ? "none" : color }),
    );
    const hasRoom = isGroup ? hasHeader(tile) : height > 14;
    // What is wider than the tile is cut off.
    if (hasRoom && fits >= 3) group.append(s("svg", { width: width - 2, height }, text));
    return group;
  }

  function drawLegend(entries: { color: string; label: string }[], isRamp: boolean) {
    const box = (color: string) => {
      const mark = h("i");
      mark.style.background = color;
      return mark;
    };
    if (!isRamp) {
      const most = 10;
      const shownEntries = entries.slice(0, most).map(({ color, label }) =>
        h("span", {}, box(color), abridged(label, 24)),
      );
      const more = entries.length > most && h("span", {}, `and ${entries.length - most} more`);
      legend.replaceChildren(...shownEntries, ...(more ? [more] : []));
      return;
    }
    const ramp = h("span", { class: "ramp" }, ...entries.map(({ color }) => box(color)));
    legend.replaceChildren(entries[0].label, ramp, entries[entries.length - 1].label);
  }

  function drawCrumbs() {
    const path: Module[] = [];
    for (let module: Module | undefined = root; module !== undefined; ) {
      path.push(module);
      if (module === shown) break;
      module = module.children.find((child) => child === shown || isWithin(shown, child));
    }
    crumbs.replaceChildren(
      ...path.map((module) => {
        const label = module === root ? "whole model" : abridged(module.label.replace(/^[./]/, ""), 60);
        const current = module === shown ? "true" : undefined;
        return h("button", { type: "button", "aria-current": current, click: () => zoom(module) }, label);
      }),
    );
    crumbs.hidden = shown === root;
  }

  /** Outlines the tile of the keyboard. */
  function mark(at: number) {
    const isSelected = (tile: Tile) => tile.data.item !== undefined && tile.data.item.at === chosen;
    tiles.forEach((tile, place) => {
      const element = map.children[place];
      element.classList.toggle("active", place === at);
      element.classList.toggle("selected", isSelected(tile));
      element.setAttribute("aria-selected", `${isSelected(tile)}`);
    });
    if (at < 0) return map.removeAttribute("aria-activedescendant");
    map.setAttribute("aria-activedescendant", `tile-${at}`);
    hint.textContent = map.children[at]?.getAttribute("aria-label") ?? "";
  }

  function press(event: KeyboardEvent) {
    const tile = tiles[active];
    if (tile === undefined) return;
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (direction !== undefined) active = nearest(tile, direction);
    else if (event.key === "Enter" || event.key === " ") open(tile);
    else if (event.key === "Escape" && shown !== root) zoom(root);
    else return;
    event.preventDefault();
    mark(active);
  }

  /** The nearest tile whose corner lies in this direction. */
  function nearest(from: Tile, [right, down]: number[]): number {
    let [found, best] = [active, Infinity];
    tiles.forEach((tile, at) => {
      const [x, y] = [tile.x0 - from.x0, tile.y0 - from.y0];
      const along = x * right + y * down;
      const distance = along + 3 * Math.abs(x * down + y * right);
      if (along > 0 && distance < best) [found, best] = [at, distance];
    });
    return found;
  }

  return {
    section,
    draw,
    /** The figures of some objects are other ones. */
    changed() {
      const path = shown.path;
      root = modules(items);
      const find = (at: Module): Module | undefined =>
        at.path === path && at.children.length > 0 ? at : at.children.filter((it) => path.startsWith(it.path)).map(find).find(Boolean);
      shown = find(root) ?? root;
      draw();
    },
    select(item: Item | undefined) {
      chosen = item?.at;
      mark(-1);
    },
  };
}

const LABELS: Record<string, string> = {
  change: "change",
  type: "type",
  storage: "storage",
  zeros: "share of zeros",
  deviation: "deviation",
  problems: "problems",
};

function isWithin(module: Module, above: Module): boolean {
  return above.children.length > 0 && module.path.startsWith(above.path) && module.path !== above.path;
}

/** Whether black text is read better on a colour than white text. */
function isLight(color: string): boolean {
  const hex = color.match(/^#(..)(..)(..)$/)?.slice(1).map((part) => parseInt(part, 16));
  const [red, green, blue] = hex ?? color.match(/\d+/g)!.map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140;
}
