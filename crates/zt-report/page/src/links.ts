// Addresses that people have, as addresses of files.

const HUB = "https://huggingface.co";
const REPOSITORY = "((?:(?:datasets|spaces)/)?[\\w.-]+/[\\w.-]+)";

/** `hf:OWNER/MODEL[@REVISION][/PATH]`, and the addresses of the pages and files of the Hub. */
const ON_HUB = [
  new RegExp(`^hf:(?://)?${REPOSITORY}(?:@([^/]+))?(?:/(.+))?$`),
  new RegExp(`^https://(?:huggingface\\.co|hf\\.co)/${REPOSITORY}(?:/(?:blob|resolve|tree)/([^/]+)(?:/(.+))?)?/?$`),
];

/** The page of a file on GitHub. */
const ON_GITHUB = /^https:\/\/github\.com\/([^/]+\/[^/]+)\/(?:blob|raw)\/(.+)$/;

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
  const onHub = ON_HUB.map((pattern) => place.match(pattern)).find(Boolean);
  if (onHub) {
    const [, repository, revision = "main", path] = onHub;
    const folder = `${HUB}/${repository}/resolve/${revision}/`;
    return path === undefined ? OPENS.map((name) => folder + name) : [folder + path];
  }
  const address = URL.canParse(place, page) ? new URL(place, page) : undefined;
  if (!/^https?:$/.test(address?.protocol ?? "")) throw new Error(`${place} is no address: give https://…, or hf:OWNER/MODEL`);
  return [address!.href.replace(ON_GITHUB, "https://raw.githubusercontent.com/$1/$2")];
}
