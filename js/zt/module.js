/** The WebAssembly module: loaded once, and begun anew after a trap. */
import init, { __wbg_reset_state } from "./engine/zt.js";

export { OpenFile } from "./engine/zt.js";

let loading;

export function load() {
  return (loading ??= begin().catch((error) => {
    loading = undefined;
    throw error;
  }));
}

async function begin() {
  const module = new URL("./engine/zt_bg.wasm", import.meta.url);
  // Node's `fetch` reads no files.
  const fs = module.protocol === "file:" && globalThis.process?.getBuiltinModule?.("node:fs");
  await init({ module_or_path: fs ? fs.readFileSync(module) : module });
}

/** How often the module was begun anew. Memory of an earlier one must not be freed in a later one. */
export let generation = 0;

export function reset() {
  generation++;
  __wbg_reset_state();
}
