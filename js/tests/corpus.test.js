/** Every file of the corpus gives the values and the errors that the program `zt` gives. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { openAsBlob, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, extname, join, relative } from "node:path";
import { test } from "node:test";
import { open } from "zt-tensor";

const CORPUS = join(process.env.ZT_ROOT, "conformance/corpus");
/** No files of their own: truths, programs that made the files, pages, parts of checkpoints. */
const OTHER = new Set([".json", ".md", ".py", ".distcp", ""]);

/** They end as a .zt file and begin as something else. A remote file is opened by its end; `verify` reads the header. */
const BY_THEIR_END = /^framing_(magic_header_.*|magic_legacy_header|01_with_footer_magic)\.zt$/;

const files = readdirSync(CORPUS, { recursive: true })
  .map((name) => join(CORPUS, name))
  .filter((path) => statSync(path).isFile() && (isSet(path) || !OTHER.has(extname(path))))
  // Its tensors share a limit, so the order of reading decides which of them exceed it.
  .filter((path) => !["SHA256SUMS", "shared_index.h5"].includes(basename(path)))
  .sort();

function isSet(path) {
  return path.endsWith(".index.json") || basename(path) === ".metadata";
}

/** By path: what the program answers. */
function truths(paths) {
  const asked = ["hash", "--dense", "--json", ...paths];
  let answer;
  try {
    answer = execFileSync(process.env.ZT_PROGRAM, asked, { maxBuffer: 2 ** 28, stdio: ["ignore", "pipe", "ignore"] });
  } catch (error) {
    // The exit code tells that some files are damaged.
    answer = error.stdout;
  }
  return new Map([JSON.parse(answer)].flat().map((truth) => [truth.file ?? truth.error.file, truth]));
}

const truth = truths(files);

const WAYS = {
  "by path": (path) => open(path),
  // Like a URL, a blob is fetched in parts.
  "from blobs": async (path) => open(await openAsBlob(path), { name: basename(path), files: await beside(path) }),
  "from bytes": async (path) => open(readFileSync(path), { name: basename(path), files: await beside(path) }),
};

const folders = new Map();

/** The files beside a file, and in folders there. */
function beside(path) {
  const folder = dirname(path);
  if (!folders.has(folder)) folders.set(folder, blobsIn(folder));
  return folders.get(folder);
}

async function blobsIn(folder) {
  const names = readdirSync(folder, { recursive: true }).filter((name) => statSync(join(folder, name)).isFile());
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await openAsBlob(join(folder, name))])));
}

for (const [way, openBy] of Object.entries(WAYS)) {
  test(`every file of the corpus ${way}`, async (context) => {
    const [kinds, differences] = [{}, []];
    let [objects, errors] = [0, 0];
    const expect = (found, wanted, label) => {
      if (found !== wanted) differences.push(`${label}: ${found}, not ${wanted}`);
    };
    for (const path of files) {
      const label = relative(CORPUS, path);
      const wanted = truth.get(path);
      const file = await result(openBy(path));
      if (wanted.error) {
        errors++;
        if (wanted.error.code === "truncated") {
          // The command refuses a file without its end. The engine refuses it too, or the tensors that are cut.
          const read = (name) => result((async () => file.tensor(name).dense())());
          const isRefused = file.code || (await Promise.all(file.names.map(read))).some(({ code }) => code);
          expect(Boolean(isRefused), true, `${label} is refused`);
        } else if (!file.code) {
          expect(way === "from blobs" && BY_THEIR_END.test(basename(path)), true, `${label} opens`);
        } else if (file.code !== "unknown-kind") {
          // Where the bytes show no kind, the program goes by the name.
          expect(file.code, wanted.error.code, `${label}: ${file.message}`);
        }
        continue;
      }
      expect(file.code, undefined, `${label}: ${file.message}`);
      if (file.code) continue;
      kinds[file.kind] = (kinds[file.kind] ?? 0) + 1;
      expect(file.names.toSorted().join(), Object.keys(wanted.objects).sort().join(), label);
      for (const name of file.names) {
        await compare(file, name, wanted.objects[name], (found, wanted) => expect(found, wanted, `${label}: ${name}`));
        objects++;
      }
      file.close();
    }
    context.diagnostic(`${objects} objects; errors: ${errors}; files: ${JSON.stringify(kinds)}`);
    assert.deepEqual(differences, []);
    for (const kind of ["zt", "npy", "npz", "pytorch", "pickle", "dcp", "onnx", "safetensors", "gguf", "squizd", "hdf5", "slm1", "zt2"]) {
      assert.ok(kinds[kind], kind);
    }
    assert.ok(objects > 1000 && errors > 100);
  });
}

/** Compares the bytes of each component, and the dense value. The program has none of a faulty object. */
async function compare(file, name, wanted, expect) {
  const tensor = await result((async () => file.tensor(name))());
  for (const [role, { sha256: sum }] of Object.entries(wanted.components ?? {})) {
    const bytes = await result(tensor.bytes(role));
    expect(bytes.code ? undefined : sha256(bytes), sum);
  }
  const values = tensor.code ? tensor : await result(tensor.dense({ raw: true }));
  // Without a dense value, the program has a null or an error.
  expect(values.code ? undefined : sha256(values), wanted.dense?.sha256);
}

/** A result, or the error with a code. */
async function result(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.code === undefined) throw error;
    return error;
  }
}

function sha256(array) {
  return createHash("sha256").update(new Uint8Array(array.buffer)).digest("hex");
}
