/** An error of the engine, or of reading a file. Its fields are in index.d.ts. */
export class ZtError extends Error {
  name = "ZtError";

  constructor({ message, kind, code, object, component, offset }, options) {
    super(message, options);
    Object.assign(this, { kind, code, object, component, offset });
  }
}

/** The system or the server could not read. */
export function unreadable(message, cause) {
  return new ZtError({ message, kind: "io", code: "io" }, { cause });
}

/** The call is wrong for any file. */
export function misuse(message) {
  return new ZtError({ message, kind: "misuse", code: "misuse" });
}

/** JavaScript cannot do it here. */
export function unsupported(message) {
  return new ZtError({ message, kind: "unsupported", code: "unsupported" });
}

/** What the engine has thrown, as an exception. */
export function asError(thrown) {
  return thrown instanceof Error ? thrown : new ZtError(thrown);
}
