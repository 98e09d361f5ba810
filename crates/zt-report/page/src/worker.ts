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
  /** What later calls name. */
  opening: number;
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
/** What is open, and how often something was asked for. */
let [files, opening, openings]: [TensorFile[], number, number] = [[], 0, 0];

const methods = {
  /** Opens a file, or two to compare. Reads headers only. What was open before stays so if this fails. */
  async open(places: Place[], page: string): Promise<Opened> {
    const mine = ++openings;
    const found: TensorFile[] = [];
    try {
      const report = await openAll(found, places, page);
      // The user has asked for other files meanwhile.
      if (mine !== openings) throw new Error("other files were opened");
      for (const file of files) file.close();
      [files, opening] = [found, mine];
      return { ...report, opening };
    } catch (error) {
      for (const file of found) file.close();
      throw error;
    }
  },

  /** The document of some objects with their values; of all where no names are given. */
  read(of: number, names: string[] | undefined, values: "all" | "sample", detail: boolean): Promise<string> {
    const [last, before] = opened(of);
    return last.report({ values, names, detail, before });
  },

  /** The last file as another kind. */
  async save(of: number, kind: string): Promise<{ blob: Blob; warnings: string[] }> {
    const { stream, warnings } = await opened(of)[0].convert({ kind });
    return { blob: await new Response(stream).blob(), warnings: warnings.map(({ message }) => message) };
  },
};

export type Methods = typeof methods;

/** The last file of an opening, and the one before it. The page may ask for one that is closed. */
function opened(of: number): [TensorFile, TensorFile?] {
  if (of !== opening) throw new Error("other files were opened");
  return [files[files.length - 1], files.length > 1 ? files[0] : undefined];
}

async function openAll(found: TensorFile[], places: Place[], page: string) {
  let base: Place | undefined;
  for (const place of places) {
    const { file, source } = await openFirst(place, page);
    found.push(file);
    // A delta has values with its base alone. Its check would read all of both.
    if (base !== undefined && "zt.delta" in file.attributes) {
      found.pop();
      file.close();
      found.push((await openFirst(source, page, { base, check: false })).file);
    }
    base ??= source;
  }
  const attributes = found.map(({ attributes }) =>
    Object.entries(attributes)
      .slice(0, ATTRIBUTES)
      .map(([key, value]): [string, string] => [short(key), short(textOf(value))]),
  );
  const [first, last] = [found[0], found[found.length - 1]];
  // With details no name is shortened, and by its name an object is read later.
  return { report: await last.report({ values: "none", detail: true, before: last === first ? undefined : first }), attributes };
}

/** The first of a place's files that is there. */
async function openFirst(place: Place, page: string, options = {}): Promise<{ file: TensorFile; source: Place }> {
  let absent: unknown;
  const all = typeof place === "string" ? addresses(place, page) : [place];
  for (const source of all) {
    try {
      return { file: await open(source, { truncated: true, fetch: counted, ...options }), source };
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
  let response: Response;
  try {
    response = await fetch(input, init);
  } catch {
    const why = navigator.onLine === false ? "there is no network" : "its server does not answer, or lets no other page read it (CORS)";
    const todo = "Download the file and drop it here, or let the server send Access-Control-Allow-Origin: * and Access-Control-Expose-Headers: Content-Range, ETag.";
    throw new Error(`${why}. ${todo}`);
  }
  const refused = refusal(response);
  if (refused !== undefined) {
    await response.body?.cancel();
    throw new Error(refused);
  }
  if (init?.method === "HEAD" || !response.body) return response;
  let received = 0;
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, stream) {
      traffic.bytes += bytes.length;
      received += bytes.length;
      // Some bodies have no length, and no end.
      if (response.status === 200 && received > WHOLE) throw new Error(IGNORES);
      stream.enqueue(bytes);
    },
  });
  return new Response(response.body.pipeThrough(counting), response);
}

const IGNORES = "the server ignores ranges, and would send the whole file: download it and drop it here.";

function refusal({ status, headers }: Response): string | undefined {
  if (status === 401 || status === 403) {
    return `HTTP ${status}: the server asks who you are, or the address is wrong. This page sends no password: download the file and drop it here.`;
  }
  if (status === 200 && headers.get("Content-Type")?.startsWith("text/html")) {
    return "the address is of a web page, and not of a file: copy the address of its download.";
  }
  return status === 200 && Number(headers.get("Content-Length")) > WHOLE ? IGNORES : undefined;
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
