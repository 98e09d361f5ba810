// Bundles the page: `node build.mjs FOLDER` writes page.js and page.css there.
// Bundles the site: `node build.mjs FOLDER PACKAGE` writes its files there. The package is the built `zt-tensor`.
import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

/** The longest site, compressed as hosts do. */
const LONGEST = 3 << 19;

const [folder = "../assets", engine] = process.argv.slice(2);
const here = (name) => join(import.meta.dirname, name);

/** The text of a bundle. A script begins with the licences of its libraries, which ask for their texts in every copy. */
async function bundled(entry, format = "iife") {
  const made = await build({
    absWorkingDir: import.meta.dirname,
    alias: engine && { "zt-tensor": engine },
    entryPoints: [entry],
    bundle: true,
    minify: true,
    charset: "utf8",
    format,
    legalComments: "none",
    metafile: true,
    outdir: "out",
    target: "es2022",
    write: false,
  });
  // Nearly all libraries of d3 have one text.
  const texts = new Map();
  for (const input of Object.keys(made.metafile.inputs).sort()) {
    const name = input.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1];
    if (name === undefined) continue;
    const text = (await readFile(here(join("node_modules", name, "LICENSE")), "utf8")).trim();
    texts.set(text, (texts.get(text) ?? new Set()).add(name));
  }
  const licences = [...texts].map(([text, names]) => `${[...names].join(", ")}:\n\n${text}`);
  const banner = licences.length > 0 ? `/*\nThis script contains:\n\n${licences.join("\n\n")}\n*/\n` : "";
  return banner + made.outputFiles[0].text.trim();
}

if (engine === undefined) {
  await writeFile(join(folder, "page.js"), await bundled("src/main.ts"));
  await writeFile(join(folder, "page.css"), await bundled("src/page.css"));
} else {
  const module = "engine/zt_bg.wasm";
  await mkdir(join(folder, "engine"), { recursive: true });
  await copyFile(join(engine, module), join(folder, module));
  const files = {
    "index.html": await readFile(here("site/index.html"), "utf8"),
    "site.css": await bundled("src/site.css"),
    "site.js": await bundled("src/site.ts"),
    "worker.js": await bundled("src/worker.ts", "esm"),
    [module]: await readFile(join(engine, module)),
  };
  const version = createHash("sha256");
  for (const bytes of Object.values(files)) version.update(bytes);
  const head = `const VERSION = "${version.digest("hex").slice(0, 16)}";\nconst FILES = ${JSON.stringify(["./", ...Object.keys(files)])};\n`;
  files["sw.js"] = head + (await readFile(here("site/sw.js"), "utf8"));
  let byteLength = 0;
  for (const [name, bytes] of Object.entries(files)) {
    await writeFile(join(folder, name), bytes);
    const compressed = gzipSync(bytes, { level: 9 }).length;
    console.log(`${name}: ${compressed} bytes compressed`);
    byteLength += compressed;
  }
  console.log(`the site: ${byteLength} bytes compressed`);
  if (byteLength > LONGEST) throw new Error(`the site is ${byteLength} bytes, more than ${LONGEST}`);
}
