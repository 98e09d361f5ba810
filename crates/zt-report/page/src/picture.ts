// A matrix as pixels: one for an element, as far as the page has them, or one for a block.

import { color as parsed } from "d3-color";

import { BAD, magnitude, signed } from "./color";
import type { Item, Picture } from "./data";
import { h } from "./dom";
import { digits } from "./text";

/** The largest height of a picture in pixels of the page, before it is enlarged. */
const TALLEST = 384;

/** The blocks of a matrix as pixels, which can be enlarged. */
export function drawPicture(item: Item, picture: Picture): Node[] {
  const { rows, columns, kind, low, high, bytes } = picture;
  const isExact = kind === "element";
  const canvas = h("canvas", { width: columns, height: rows, class: "picture", role: "img", "aria-label": "Matrix" });
  canvas.style.aspectRatio = `${columns} / ${rows}`;
  // A small matrix does not fill the panel, and a tall one is not taller than it.
  const fitting = Math.min(Math.max(columns * 8, Math.min(columns * 24, 240)), (TALLEST * columns) / rows);
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
  const box = h("div", { class: "scroll", role: "group", "aria-label": "Matrix", tabindex: 0 }, canvas);
  let zoom = 1;
  const enlarge = (factor: number) => {
    // The middle of what is seen stays there.
    const [x, y] = [box.scrollLeft + box.clientWidth / 2, box.scrollTop + box.clientHeight / 2];
    zoom *= factor;
    canvas.style.width = zoom === 1 ? `min(100%, ${fitting}px)` : `calc(${zoom} * min(100%, ${fitting}px))`;
    box.scrollTo(x * factor - box.clientWidth / 2, y * factor - box.clientHeight / 2);
    smaller.disabled = zoom <= 1;
    larger.disabled = zoom >= 16;
  };
  const button = (label: string, text: string, factor: number) =>
    h("button", { type: "button", "aria-label": label, click: () => enlarge(factor) }, text);
  const [smaller, larger] = [button("Smaller", "−", 0.5), button("Larger", "+", 2)];
  enlarge(1);
  return [
    h("div", { class: "zoom" }, h("h4", {}, `Matrix, ${high1}×${wide1}`), smaller, larger),
    box,
    h("div", { class: "legend" }, digits(exact[0]), h("span", { class: "ramp" }, ...ramp), digits(exact[23]), under),
    h("p", { class: "caption" }, what),
  ];
}
