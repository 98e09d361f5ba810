/** A web server with range requests, which counts what it sends. */
import { createServer } from "node:http";

/**
 * `find(path)` gives `{ byteLength, read(start, end), headers }`, `{ status }`, or `undefined`. `ranges: false` is a
 * server that ignores ranges.
 */
export async function serve(find, { ranges = true } = {}) {
  const sent = { bytes: 0, requests: 0 };
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const file = find(decodeURIComponent(pathname));
    sent.requests++;
    if (!file || file.status) {
      response.writeHead(file?.status ?? 404, { "Access-Control-Allow-Origin": "*" }).end();
      return;
    }
    let [start, end, status] = [0, file.byteLength, 200];
    const headers = { "Access-Control-Allow-Origin": "*", ...file.headers };
    const asked = ranges && request.headers.range?.match(/^bytes=(\d+)-(\d+)$/);
    if (asked) {
      [start, end, status] = [Number(asked[1]), Math.min(Number(asked[2]) + 1, end), 206];
      if (start >= end) {
        response.writeHead(416, { "Content-Range": `bytes */${file.byteLength}` }).end();
        return;
      }
      headers["Content-Range"] = `bytes ${start}-${end - 1}/${file.byteLength}`;
    }
    headers["Content-Length"] = end - start;
    response.writeHead(status, headers);
    if (request.method === "HEAD") {
      response.end();
      return;
    }
    sent.bytes += end - start;
    response.end(file.read(start, end));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    sent,
    url: (path) => `http://127.0.0.1:${server.address().port}/${path}`,
    close: () => server.close(),
  };
}

/** Bytes as a file of a server. */
export function bytesFile(bytes, headers) {
  return { byteLength: bytes.length, read: (start, end) => bytes.subarray(start, end), headers };
}
