// Addresses that people have, as addresses of files.

const HUB = "https://huggingface.co";

/** What opens a repository of the Hub: the first of these that it has. */
const OPENS = [
  "model.safetensors.index.json",
  "model.safetensors",
  "pytorch_model.bin.index.json",
  "pytorch_model.bin",
  "adapter_model.safetensors",
];

/** The addresses to try, the likeliest first. Throws for a text that is no address. */
export function addresses(text: string, page: string): string[] {
  const place = text.trim();
  const onHub = place.match(/^(?:hf:(?:\/\/)?|https:\/\/(?:huggingface\.co|hf\.co)\/)([\w.-]+\/[\w.-]+)(?:@([^/]+))?(?:\/(.+))?$/);
  if (!onHub) {
    const url = new URL(place, page);
    // The page of a file, and the file.
    const onGit = url.href.match(/^https:\/\/github\.com\/([^/]+\/[^/]+)\/(?:blob|raw)\/(.+)$/);
    return [onGit ? `https://raw.githubusercontent.com/${onGit[1]}/${onGit[2]}` : url.href];
  }
  const [, model, revision = "main", rest = ""] = onHub;
  const isAddress = place.startsWith("https:");
  const [, shown, file = rest] = (isAddress && rest.match(/^(?:blob|resolve|tree)\/([^/]+)(?:\/(.+))?$/)) || [];
  const folder = `${HUB}/${model}/resolve/${shown ?? revision}/`;
  const path = shown === undefined ? rest : file === rest ? "" : file;
  return path === "" ? OPENS.map((name) => folder + name) : [folder + path];
}
