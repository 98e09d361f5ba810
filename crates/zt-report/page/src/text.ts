// Texts and numbers for people.

/** As `zt` prints it: characters that are invisible, or that reorder the text beside them, are written out. */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\u{ad}\u{61c}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{feff}\u{fff9}-\u{fffb}\u{e0000}-\u{e007f}]/gu,
    (character) =>
      ({ "\n": "\\n", "\r": "\\r", "\t": "\\t" })[character] ?? `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}

/** The beginning and the end of a long text. */
export function abridged(text: string, limit: number): string {
  const all = [...printable(text.length > 4 * limit ? text.slice(0, 2 * limit) + text.slice(-2 * limit) : text)];
  if (all.length <= limit) return all.join("");
  const half = limit >> 1;
  return `${all.slice(0, half).join("")}…${all.slice(-half).join("")}`;
}

/** The name of what is at a path: of a DCP checkpoint, and of a folder, the folder's. */
export function title(path: string): string {
  const parts = path.split(/[/\\]/).filter((part) => part !== "");
  const name = parts.pop() ?? path;
  return abridged(name === ".metadata" ? (parts.pop() ?? name) : name, 80);
}

export function human(bytes: number): string {
  let [value, unit] = [bytes, "B"];
  for (const next of ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]) {
    if (value < 1023.95) break;
    [value, unit] = [value / 1024, next];
  }
  return unit === "B" ? `${bytes} B` : `${value.toFixed(1)} ${unit}`;
}

/** Four significant digits. */
export function digits(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string" || (Number.isInteger(value) && Math.abs(value) < 1e6)) return `${value}`;
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e6) return `${Number(value.toPrecision(4))}`;
  return value.toExponential(2);
}

/** As `digits`, for a column that has no room for a long integer. */
export function narrow(value: number | string | undefined): string {
  return digits(typeof value === "string" && value.length > 9 ? Number(value) : value);
}

/** `1.2 M`: a count with its unit. */
export function large(count: number): string {
  for (const [unit, name] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e4, "k"]] as const) {
    if (count >= unit) return `${(count / (unit === 1e4 ? 1e3 : unit)).toFixed(1)} ${name}`;
  }
  return `${count}`;
}

export const plural = (count: number, one: string, many: string) =>
  `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

export const percent = (part: number) =>
  part === 0 ? "0 %" : part < 0.001 ? "<0.1 %" : part >= 10 ? `${(100 * part).toExponential(1)} %` : `${(100 * part).toFixed(part > 0.999 && part < 1 ? 2 : 1)} %`;

export const shape = (extents: number[]) => (extents.length === 0 ? "scalar" : extents.join("×"));
