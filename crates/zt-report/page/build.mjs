// Bundles the page: `node build.mjs FOLDER` writes page.js and page.css there.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const folder = process.argv[2] ?? "../assets";
const made = await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: { page: "src/main.ts", style: "src/page.css" },
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  legalComments: "none",
  metafile: true,
  outdir: "out",
  target: "es2022",
  write: false,
});

// The licences of the libraries ask for their texts in every copy. Nearly all libraries of d3 have one text.
const texts = new Map();
for (const input of Object.keys(made.metafile.inputs).sort()) {
  const name = input.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1];
  if (name === undefined) continue;
  const text = (await readFile(join(import.meta.dirname, "node_modules", name, "LICENSE"), "utf8")).trim();
  texts.set(text, (texts.get(text) ?? new Set()).add(name));
}
const licences = [...texts].map(([text, names]) => `${[...names].join(", ")}:\n\n${text}`);
const banner = `/*\nThis script contains:\n\n${licences.join("\n\n")}\n*/\n`;

const [script, style] = [".js", ".css"].map((end) => made.outputFiles.find((file) => file.path.endsWith(end)).text);
await writeFile(join(folder, "page.js"), banner + script.trim());
await writeFile(join(folder, "page.css"), style.trim());
