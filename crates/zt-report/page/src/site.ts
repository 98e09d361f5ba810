// The site: opens files and addresses in a worker, and draws what it reads.

import { Calls, ofWorker } from "./reader";
import { human, plural, printable, title } from "./text";
import { draw } from "./view";
import type { Place } from "./worker";

const main = document.querySelector("main")!;
const status = document.getElementById("status")!;
const field = (id: string) => document.getElementById(id) as HTMLInputElement;

let calls: Calls | undefined;
/** How often files were opened, and the last time that worked. */
let [opening, shown] = [0, 0];

/** Opens what is at these places: one, or two to compare. */
async function open(places: Place[]) {
  const mine = ++opening;
  say("Reading headers …");
  try {
    calls ??= new Calls(new Worker("worker.js", { type: "module" }));
    const opened = await calls.call("open", places, location.href);
    if (mine !== opening) return;
    const source = ofWorker(calls, opened, places);
    shown = mine;
    // The address of the page is what it shows. A file of this machine has none.
    if (typeof places[0] !== "string") history.replaceState(null, "", location.pathname + location.hash);
    draw(main, source);
    document.title = source.report.files.map(({ path }) => title(path)).join(" → ");
  } catch (error) {
    if (mine !== opening) return;
    say(printable((error as Error).message), true);
  }
}

function say(text: string, isFault = false) {
  status.textContent = text;
  status.className = isFault ? "fault" : "";
}

// Says what was transferred. A text that stays is not announced again.
setInterval(() => {
  if (shown === 0 || shown !== opening) return;
  const { requests, bytes } = calls!.traffic;
  const text = requests > 0 ? `${plural(requests, "request", "requests")}, ${human(bytes)} received` : "Nothing leaves this browser.";
  if (status.textContent !== text) say(text);
}, 500);

/** Opens files by their paths, which have the name of their folder. Two files that are no set are compared. */
function openFiles(files: Record<string, File>) {
  const names = Object.keys(files);
  const isSet = names.some((name) => /-of-\d+\.|\.json$|\.metadata$/.test(name));
  for (const name of ["url", "with"]) field(name).value = "";
  if (names.length === 1) open([files[names[0]]]);
  else if (names.length === 2 && !isSet) open(names.map((name) => files[name]));
  else open([files]);
}

const named = (list: Iterable<File>) => Object.fromEntries([...list].map((file) => [file.webkitRelativePath || file.name, file]));

for (const [button, input] of [["file", "files"], ["folder", "folders"]]) {
  field(button).addEventListener("click", () => field(input).click());
  field(input).addEventListener("change", () => openFiles(named(field(input).files!)));
}

/** Files that were dropped, and files within a dropped folder, by their paths. */
async function below(entry: FileSystemEntry, found: Record<string, File>): Promise<void> {
  if (entry.isFile) {
    found[entry.fullPath.slice(1)] = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const inner of some) await below(inner, found);
  }
}

/** Texts may be dropped, too: into a field. */
const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes("Files");

addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", () => document.body.classList.remove("dropping"));
addEventListener("drop", async (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  document.body.classList.remove("dropping");
  const entries = [...(event.dataTransfer?.items ?? [])].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const files = entries.length > 0 ? {} : named(event.dataTransfer?.files ?? []);
  try {
    for (const entry of entries) await below(entry, files);
    openFiles(files);
  } catch (error) {
    opening++;
    say(printable((error as Error).message), true);
  }
});

// The address of the page is what it shows.
const asked = new URLSearchParams(location.search);
const given = ["url", "with"].map((name) => (field(name).value = asked.get(name) ?? "")).filter((text) => text !== "");
document.querySelector("form")!.addEventListener("submit", () => {
  field("with").disabled = field("with").value === "";
});
if (given.length > 0) open(given);
else if (location.protocol === "file:") {
  say("A browser starts no worker of a page on disk: serve this folder, as `python3 -m http.server` does.", true);
}
navigator.serviceWorker?.register("sw.js").catch(() => {
  // Not on this host, or not from disk: then the page needs a network.
});
