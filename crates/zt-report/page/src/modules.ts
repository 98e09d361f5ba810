// The tree of modules: dots and slashes part the names of objects.

import type { Item } from "./data";
import { storage } from "./color";

/** Figures of all objects below a module. */
export interface Sums {
  bytes: number;
  objects: number;
  count: number;
  zeros: number;
  problems: number;
  types: Map<string, number>;
  storages: Map<string, number>;
  /** The deviation of a value within its object, as a root mean square. */
  std?: number;
  /** The norm of the change over the norm of the first values. */
  relative?: number;
  /** Whether all of it is added, removed or of another shape. */
  isNew: boolean;
}

export interface Module extends Sums {
  /** The part of the name below the module above. */
  label: string;
  /** The whole name, up to here. */
  path: string;
  children: Module[];
  /** The object, for a leaf. */
  item?: Item;
}

/** Parts of a name. The rest of a deeper name is one part: names of strangers may have thousands. */
const DEEPEST = 12;

interface Node {
  label: string;
  children: Map<string, Node>;
  item?: Item;
}

export function modules(items: Item[]): Module {
  const root: Node = { label: "", children: new Map() };
  for (const item of items) {
    let node = root;
    for (const label of parts(item.name)) {
      let child = node.children.get(label);
      if (child === undefined) node.children.set(label, (child = { label, children: new Map() }));
      node = child;
    }
    // An object may have the name of a module, or of another object that was shortened.
    const label = `\0${item.at}`;
    node.children.set(label, { label: "", children: new Map(), item });
  }
  return summed(root, "", "");
}

function parts(name: string): string[] {
  const all = name.match(/[./]?[^./]*/g)?.filter((part) => part !== "") ?? [];
  return all.length <= DEEPEST ? all : [...all.slice(0, DEEPEST), all.slice(DEEPEST).join("")];
}

/** A module with a single child is one with it. */
function summed(node: Node, label: string, path: string): Module {
  if (node.children.size === 1) {
    const [child] = node.children.values();
    return summed(child, label + child.label, path + child.label);
  }
  if (node.item !== undefined) return leaf(node.item, label, path);
  const children = [...node.children.values()].map((child) => summed(child, child.label, path + child.label));
  return module(children, label, path);
}

/** A module of these. */
export function module(children: Module[], label: string, path: string): Module {
  const sums = { bytes: 0, objects: 0, count: 0, zeros: 0, problems: 0 };
  const [types, storages] = [new Map<string, number>(), new Map<string, number>()];
  let [squares, counted, apart, norm, isNew] = [0, 0, 0, 0, children.length > 0];
  for (const child of children) {
    sums.bytes += child.bytes;
    sums.objects += child.objects;
    sums.count += child.count;
    sums.zeros += child.zeros;
    sums.problems += child.problems;
    isNew &&= child.isNew;
    for (const [all, more] of [[types, child.types], [storages, child.storages]] as const) {
      for (const [name, bytes] of more) all.set(name, (all.get(name) ?? 0) + bytes);
    }
    if (child.std !== undefined) {
      squares += child.std ** 2 * child.count;
      counted += child.count;
    }
    if (child.relative !== undefined) {
      apart += child.relative ** 2 * norms.get(child)!;
      norm += norms.get(child)!;
    }
  }
  const module: Module = {
    ...sums,
    types,
    storages,
    isNew,
    label,
    path,
    children,
    std: counted > 0 ? Math.sqrt(squares / counted) : undefined,
    relative: norm > 0 ? Math.sqrt(apart / norm) : undefined,
  };
  norms.set(module, norm);
  return module;
}

/** Squares of norms, by which changes of objects become one of their module. */
const norms = new WeakMap<Module, number>();

function leaf(item: Item, label: string, path: string): Module {
  const change = item.change;
  const module: Module = {
    bytes: item.decoded,
    objects: 1,
    count: item.count ?? 0,
    zeros: item.zeros,
    problems: item.problems.length > 0 ? 1 : 0,
    types: new Map([[item.type, item.decoded]]),
    storages: new Map([[storage(item), item.decoded]]),
    std: item.std,
    relative: change?.relative ?? undefined,
    isNew: change !== undefined && change.status !== "same" && change.status !== "changed",
    label,
    path,
    children: [],
    item,
  };
  norms.set(module, (change?.norm ?? 0) ** 2);
  return module;
}
