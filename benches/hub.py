#!/usr/bin/env python3
"""A file of the Hugging Face Hub, by `zt fetch` and by `hf download`, round by round.

usage: hub.py PATH/TO/zt PATH/TO/hf FILE URL [ROUNDS]

URL is where a web server of this machine has FILE, such as nginx, or `delay.py` in front of it. This script stands for the Hub: it
names the repository and the SHA-256 of the file, and redirects to URL. Both programs write to a fresh folder beside FILE. Prints
the seconds of each round.
"""

import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

COMMIT = "c" * 40


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, body, status = self.path.split("?")[0], b"", 200
        headers = {"X-Repo-Commit": COMMIT}
        if path.startswith("/api/"):
            lfs = {"sha256": self.server.digest, "size": self.server.size, "pointerSize": 132}
            file = {"rfilename": self.server.name, "size": self.server.size, "blobId": "b" * 40, "lfs": lfs}
            body = json.dumps({"id": "owner/model", "sha": COMMIT, "siblings": [file]}).encode()
        elif "/resolve/" in path:
            status, tag = 302, f'"{self.server.digest}"'
            headers |= {"Location": self.server.url, "X-Linked-Size": str(self.server.size), "X-Linked-Etag": tag, "ETag": tag}
        else:
            status = 404
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def main():
    zt, hf, file, url, *rounds = sys.argv[1:]
    file = pathlib.Path(file)
    hub = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    with file.open("rb") as data:
        hub.digest = hashlib.file_digest(data, "sha256").hexdigest()
    hub.name, hub.size, hub.url = file.name, file.stat().st_size, url
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    out = file.parent / "fetched"
    environment = {**os.environ, "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", "HF_HUB_CACHE": str(out / "cache")}
    commands = {
        "zt": [zt, "fetch", "hf:owner/model", "-o", str(out / "model"), "--allow-http"],
        "hf": [hf, "download", "owner/model", file.name, "--local-dir", str(out / "model")],
    }
    for _ in range(int((rounds or [3])[0])):
        for name, command in commands.items():
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            start = time.perf_counter()
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            took = time.perf_counter() - start
            assert (out / "model" / file.name).stat().st_size == file.stat().st_size
            print(f"{name} {took:.2f}", flush=True)
    shutil.rmtree(out)


if __name__ == "__main__":
    main()
