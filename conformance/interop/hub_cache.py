#!/usr/bin/env python3
"""Has `zt fetch --hub-cache` fill a cache, and `huggingface_hub` open it offline. Run by `cargo xtask interop`.

usage: hub_cache.py ZT

A server of this process stands for the Hub: it answers the API, and redirects to the files, as the Hub does.
"""
import hashlib
import http.server
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading

COMMIT = "ab" * 20
FILES = {
    "config.json": b'{"model_type": "llama"}\n',
    "empty.txt": b"",
    "model.safetensors": random.Random(1).randbytes(3_000_000),
    "original/model.safetensors": random.Random(2).randbytes(100_000),
}
LFS = [name for name in FILES if name.endswith(".safetensors")]

OFFLINE = """
import json, sys
from huggingface_hub import hf_hub_download, scan_cache_dir, snapshot_download, try_to_load_from_cache
cache, names = sys.argv[1], json.loads(sys.argv[2])
folder = snapshot_download("owner/model", cache_dir=cache)
one = {name: hf_hub_download("owner/model", name, cache_dir=cache) for name in names}
tried = {name: try_to_load_from_cache("owner/model", name, cache_dir=cache) for name in names}
assert one == tried, (one, tried)
scanned = scan_cache_dir(cache)
assert not scanned.warnings, scanned.warnings
(repository,) = scanned.repos
(revision,) = repository.revisions
print(json.dumps({
    "folder": folder, "files": one, "repository": repository.repo_id, "refs": sorted(revision.refs),
    "commit": revision.commit_hash, "size": repository.size_on_disk, "count": revision.nb_files,
}))
"""


def blob_id(data):
    """The name that Git gives to a file."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0]
        if path.startswith("/api/models/owner/model/revision/"):
            siblings = [self.sibling(name, data) for name, data in FILES.items()]
            return self.answer(200, json.dumps({"sha": COMMIT, "siblings": siblings}).encode())
        name = path.removeprefix(f"/owner/model/resolve/{COMMIT}/")
        if name in FILES:
            data = FILES[name]
            tag = hashlib.sha256(data).hexdigest() if name in LFS else blob_id(data)
            port = self.server.server_port
            return self.answer(
                302,
                Location=f"http://127.0.0.1:{port}/store/{name}",
                X_Repo_Commit=COMMIT,
                X_Linked_Size=str(len(data)),
                X_Linked_Etag=f'"{tag}"',
                ETag=f'"{tag}"',
            )
        data = FILES.get(path.removeprefix("/store/"))
        if data is None:
            return self.answer(404)
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            return self.answer(200, data, ETag='"1"')
        first, last = asked.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        if start >= end:
            return self.answer(416)
        return self.answer(206, data[start:end], ETag='"1"', Content_Range=f"bytes {start}-{end - 1}/{len(data)}")

    do_HEAD = do_GET

    def sibling(self, name, data):
        found = {"rfilename": name, "size": len(data), "blobId": blob_id(data)}
        if name in LFS:
            found["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 132}
        return found

    def log_message(self, *_):
        pass


def main():
    hub = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    with tempfile.TemporaryDirectory() as folder:
        cache = pathlib.Path(folder, "cache")
        online = {**plain, "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", "HF_HUB_CACHE": str(cache)}
        fetch = [sys.argv[1], "fetch", "hf:owner/model", "--hub-cache"]
        subprocess.run(fetch, check=True, env=online, stdout=subprocess.DEVNULL)
        # The second time all blobs are there.
        again = subprocess.run([*fetch, "--json"], check=True, env=online, capture_output=True)
        answer = json.loads(again.stdout)
        assert not answer["files"] and len(answer["present"]) == len(FILES), answer
        hub.shutdown()

        offline = {**plain, "HF_HUB_OFFLINE": "1", "HF_HOME": folder}
        judge = [sys.executable, "-c", OFFLINE, str(cache), json.dumps(list(FILES))]
        found = json.loads(subprocess.run(judge, check=True, env=offline, capture_output=True).stdout)
        assert found["repository"] == "owner/model" and found["refs"] == ["main"], found
        assert (found["commit"], found["count"]) == (COMMIT, len(FILES)), found
        assert found["size"] == sum(map(len, FILES.values())), found
        snapshot = pathlib.Path(found["folder"])
        assert {str(it.relative_to(snapshot)) for it in snapshot.rglob("*") if it.is_file()} == set(FILES)
        for name, data in FILES.items():
            assert pathlib.Path(found["files"][name]).read_bytes() == data, name
    print(f"huggingface_hub opens a cache of zt offline: {len(FILES)} files")


main()
