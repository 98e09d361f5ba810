// The thread that reads files for the site. Nothing else touches the engine.

import { open, type TensorFile } from "zt-tensor";

import { addresses } from "./links";

/** What a user has: an address, a file, or the files of a folder by their paths. */
export type Place = string | File | Record<string, File>;

/** What a server has sent. */
export interface Traffic {
  requests: number;
  bytes: number;
}

export interface Opened {
  /** The document of the headers. */
  report: string;
  /** Keys and values of each file's attributes, as text. */
  attributes: [string, string][][];
}

/** The most bytes of a file that comes as a whole, because its server ignores ranges. */
const WHOLE = 2 ** 28;
/** Attributes of a file that are shown, and the length of their texts. */
const [ATTRIBUTES, TEXT] = [200, 200];

const traffic: Traffic = { requests: 0, bytes: 0 };
let files: TensorFile[] = [];

const methods = {
  /** Opens a file, or two to compare. Reads headers only. */
  async open(places: Place[], page: string): Promise<Opened> {
    for (const file of files) file.close();
    files = [];
    for (const place of places) files.push(await opened(place, page));
    const [first, last] = [files[0], files[files.length - 1]];
    // A delta has values with its base alone. Its check would read all of both.
    if (places.length === 2 && "zt.delta" in last.attributes) {
      last.close();
      files[1] = await opened(places[1], page, { base: sourcesOf(places[0], page)[0], check: false });
    }
    const attributes = files.map(({ attributes }) =>
      Object.entries(attributes)
        .slice(0, ATTRIBUTES)
        .map(([key, value]): [string, string] => [short(key), short(textOf(value))]),
    );
    return { report: await files[files.length - 1].report({ values: "none", before: files[1] && first }), attributes };
  },

  /** The document of some objects with their values; of all where no names are given. */
  read(names: string[] | undefined, values: "all" | "sample", detail: boolean): Promise<string> {
    return files[files.length - 1].report({ values, names, detail, before: files[1] && files[0] });
  },

  /** The last file as another kind. */
  async save(kind: string): Promise<{ blob: Blob; warnings: string[] }> {
    const { stream, warnings } = await files[files.length - 1].convert({ kind });
    return { blob: await new Response(stream).blob(), warnings: warnings.map(({ message }) => message) };
  },
};

export type Methods = typeof methods;

function sourcesOf(place: Place, page: string) {
  return typeof place === "string" ? addresses(place, page) : [place];
}

/** The first of an address's files that is there. */
async function opened(place: Place, page: string, options = {}): Promise<TensorFile> {
  let absent: unknown;
  const all = sourcesOf(place, page);
  for (const source of all) {
    try {
      return await open(source, { truncated: true, fetch: counted, ...options });
    } catch (error) {
      if ((error as { status?: number }).status !== 404) throw error;
      absent = error;
    }
  }
  if (all.length === 1) throw absent;
  const names = all.map((address) => `${address}`.split("/").pop()).join(", ");
  throw new Error(`${place}: the repository has none of ${names}: name a file of it, as hf:OWNER/MODEL/FILE`);
}

/** `fetch` that counts, and that says what to do where a host refuses. */
async function counted(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  traffic.requests++;
  let response;
  try {
    response = await fetch(input, init);
  } catch {
    const why = navigator.onLine === false ? "there is no network" : "its server does not answer, or lets no other page read it (CORS)";
    const todo = "Download the file and drop it here, or let the server send Access-Control-Allow-Origin: * and Access-Control-Expose-Headers: Content-Range, ETag.";
    throw new Error(`${why}. ${todo}`);
  }
  const length = init?.method === "HEAD" ? 0 : Number(response.headers.get("Content-Length"));
  const refused = refusal(response, length);
  if (refused !== undefined) {
    await response.body?.cancel();
    throw new Error(refused);
  }
  traffic.bytes += length;
  return response;
}

function refusal({ status, headers }: Response, length: number): string | undefined {
  if (status === 401 || status === 403) {
    return `HTTP ${status}: the server asks who you are. This page sends no password: download the file and drop it here.`;
  }
  if (status === 200 && headers.get("Content-Type")?.startsWith("text/html")) {
    return "the address is of a web page, and not of a file: copy the address of its download.";
  }
  if (status === 200 && length > WHOLE) {
    return `the server ignores ranges, and would send all ${length.toLocaleString("en")} bytes: download the file and drop it here.`;
  }
  return undefined;
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  const some = Array.isArray(value) ? value.slice(0, TEXT) : value;
  return JSON.stringify(some, (_, value) => (typeof value === "bigint" ? `${value}` : value)) ?? "";
}

const short = (text: string) => (text.length > TEXT ? `${text.slice(0, TEXT)}…` : text);

addEventListener("message", async ({ data: { id, method, args } }) => {
  try {
    const result = await (methods[method as keyof Methods] as (...args: unknown[]) => unknown)(...args);
    postMessage({ id, result, traffic });
  } catch (error) {
    postMessage({ id, error: { message: (error as Error).message, code: (error as { code?: string }).code }, traffic });
  }
});
