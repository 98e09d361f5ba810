// The top of the page: totals, and what verification found.

import type { FileSummary, Findings, Item, Report } from "./data";
import { h } from "./dom";
import { abridged, human, large, plural, printable, title } from "./text";

/** Reasons that are listed, and objects of each. */
const [REASONS, LISTED] = [50, 200];

export function drawSummary(report: Report, onSelect: (item: Item) => void) {
  const { files } = report;
  const last = files[files.length - 1];
  const cards =
    files.length === 1
      ? [
          card("parameters", large(last.parameters), last.parameters < 1e4 ? "" : last.parameters.toLocaleString("en")),
          card("bytes", human(last.decoded), last.stored === last.decoded ? "" : `stored in ${human(last.stored)}`),
          card("objects", last.objects.toLocaleString("en"), `${last.kind} file`),
        ]
      : statuses(report);
  if (last.delta && files.length === 1) cards.splice(0, 3, ...changes(last.delta), card("bytes", human(last.byte_len), "of the delta"));
  return h(
    "header",
    {},
    h("h1", {}, ...files.flatMap((file, at) => [at > 0 ? " → " : "", h("bdi", {}, title(file.path))])),
    // Names without folders are the heading already.
    files.some(({ path }) => /[/\\]/.test(path)) && h("p", { class: "caption" }, files.map((file) => abridged(file.path, 300)).join(" → ")),
    h("div", { class: "cards" }, ...cards, ...files.map((file, at) => verified(file, which(files, at))), problems(report)),
    last.delta && files.length === 1 && h("p", { class: "caption" }, "A delta: how far values move is seen with the base, zt report BASE DELTA --base BASE."),
    report.isSample && h("p", { class: "caption" }, "The figures are of a sample of each object's values."),
    h("div", { class: "reasons" }, ...reasons(report.items, onSelect)),
    ...files.flatMap((file, at) => lists(file, which(files, at))),
  );
}

/** What the figures show. Of values that were not read they show nothing. */
function problems({ items, isSample, isInParts }: Report) {
  const label = "with problems";
  const found = items.filter((item) => item.problems.length > 0).length;
  const unread = items.filter((item) => item.count === undefined && item.problems.length === 0).length;
  const sampled = items.filter((item) => isSample || item.isSample).length;
  const also = unread > 0 ? `${plural(unread, "object", "objects")} not read` : sampled > 0 ? `of ${plural(sampled, "object", "objects")} a sample was read` : "";
  if (found > 0) return card(label, plural(found, "object", "objects"), ["see below", also].filter(Boolean).join("; "), "bad");
  if (unread > 0 && unread === items.length) return card(label, "not looked at", "values were not read");
  return card(label, "0 objects", also || `no NaN, no dead rows${isInParts ? "" : ", no outliers"}`, also ? "" : "good");
}

/** The objects with problems, by what is wrong. Reasons that differ in numbers are one. */
function reasons(items: Item[], onSelect: (item: Item) => void): Node[] {
  const found = new Map<string, Item[]>();
  for (const item of items) {
    for (const reason of new Set(item.problems.map(reasonOf))) {
      const all = found.get(reason);
      if (all) all.push(item);
      else found.set(reason, [item]);
    }
  }
  const rest = found.size > REASONS && h("p", { class: "caption" }, `and ${plural(found.size - REASONS, "reason", "reasons")} more, in the table`);
  const lists = [...found]
    .sort((a, b) => b[1].length - a[1].length)
    .slice(0, REASONS)
    .map(([reason, all]) => {
      const link = (item: Item) => h("button", { type: "button", click: () => onSelect(item) }, h("bdi", {}, abridged(item.name, 120)));
      const more = all.length > LISTED && h("li", {}, `and ${(all.length - LISTED).toLocaleString("en")} more`);
      const list = h("ul", { tabindex: 0 }, ...all.slice(0, LISTED).map((item) => h("li", {}, link(item))), more);
      return h("details", {}, h("summary", {}, `${abridged(reason, 120)}: ${plural(all.length, "object", "objects")}`), list);
    });
  return rest ? [...lists, rest] : lists;
}

/** `3 rows of zeros` and `1 row of zeros` are one; of an error its code. */
const reasonOf = (problem: string) =>
  printable(problem)
    .replace(/: .*/s, "")
    .replace(/-?\d[\d.]*(e[+-]?\d+)? ?/g, "")
    .replace(/^deviation times/, "deviation unlike")
    .replace(/^infinity$/, "infinities")
    .replace(/^(row|column) of/, "$1s of");

function card(label: string, value: string, note: string, kind = "") {
  return h("div", { class: `card ${kind}` }, h("span", { class: "label" }, label), h("strong", {}, value), h("span", { class: "note" }, note));
}

/** Of a delta without its base. */
function changes({ base, changed, whole, removed }: NonNullable<FileSummary["delta"]>) {
  return [
    card("changed", changed.toLocaleString("en"), `of ${plural(base, "object", "objects")} of the base`),
    card("whole", whole.toLocaleString("en"), "added or replaced"),
    card("removed", removed.toLocaleString("en"), "objects"),
  ];
}

function statuses({ items }: Report) {
  const counts = new Map<string, number>();
  for (const { change } of items) counts.set(change!.status, (counts.get(change!.status) ?? 0) + 1);
  const all = ["changed", "same", "added", "removed", "incomparable", "unread"];
  const shown = all.filter((status) => counts.has(status) || status === "changed");
  const retyped = items.filter((item) => item.type.includes(" → "));
  const types = [...new Set(retyped.map((item) => item.type))];
  const other = retyped.length > 0 && card("other type", plural(retyped.length, "object", "objects"), abridged(types.join(", "), 60));
  const cards = shown.map((status) => card(status, (counts.get(status) ?? 0).toLocaleString("en"), status === "incomparable" ? "other shapes or unreadable" : "objects"));
  return other ? [...cards, other] : cards;
}

/** Says of which file something is, where there are two. */
const which = (files: FileSummary[], at: number) => (files.length === 1 ? "" : at === 0 ? ", first file" : ", second file");

function verified(file: FileSummary, which: string) {
  const { problems, unverified } = file;
  const label = (file.is_verified ? "verified" : "headers only") + which;
  const note = unverified > 0 ? `${plural(unverified, "component has", "components have")} no digest` : "all digests match";
  if (problems.count > 0) return card(label, plural(problems.count, "problem", "problems"), "see below", "bad");
  return card(label, file.is_verified ? "ok" : "not verified", file.is_verified ? note : "values were not read", file.is_verified ? "good" : "");
}

function lists(file: FileSummary, which: string): Node[] {
  const found: Node[] = [];
  const add = (label: string, { count, first }: Findings, isOpen: boolean) => {
    if (count === 0) return;
    const lines = first.map(({ code, message }) => h("li", {}, h("code", {}, code), " ", h("bdi", {}, printable(message))));
    const more = count > first.length && h("li", {}, `and ${count - first.length} more`);
    found.push(h("details", { open: isOpen }, h("summary", {}, label + which), h("ul", { tabindex: 0 }, ...lines, more)));
  };
  add(plural(file.problems.count, "problem", "problems"), file.problems, true);
  add(plural(file.warnings.count, "warning", "warnings"), file.warnings, false);
  if (file.attributes.length > 0) {
    const rows = file.attributes.map(([key, value]) =>
      h("tr", {}, h("th", { scope: "row" }, h("bdi", {}, printable(key))), h("td", {}, h("bdi", {}, printable(value)))),
    );
    const label = plural(file.attributes.length, "attribute", "attributes") + which;
    found.push(h("details", {}, h("summary", {}, label), h("table", { class: "attributes" }, h("tbody", {}, ...rows))));
  }
  return found;
}
