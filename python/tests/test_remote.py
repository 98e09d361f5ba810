"""URLs where calls take paths."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy
import pytest

import zt
import zt.numpy

HTTP = {"allow_http": True}


class Store(ThreadingHTTPServer):
    """A web server that sends ranges of the files in memory, and counts."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.sent = 0

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        store = self.server
        assert isinstance(store, Store)
        store.asked.append(self.path)
        body = store.files.get(self.path.split("?")[0].lstrip("/"))
        if body is None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        total = len(body)
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers["Range"])
        assert asked is not None
        first, last = asked.groups()
        start = int(first) if first else max(0, total - int(last))
        end = min(int(last) + 1, total) if first and last else total
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{total}")
        self.send_header("Content-Length", str(end - start))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Tue, 24 Nov 2026 10:00:00 GMT")
        self.end_headers()
        self.wfile.write(body[start:end])
        store.sent += end - start

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def values() -> dict[str, numpy.ndarray]:
    return {"a": numpy.arange(6, dtype="f4").reshape(2, 3), "b": numpy.ones(4, "i2")}


def test_a_url_opens_as_a_file(store: Store) -> None:
    store.files["m.zt"] = zt.numpy.save(values())
    file = zt.open(store.url("m.zt"), storage_options=HTTP)
    assert file["a"][1, 2] == 5
    numpy.testing.assert_array_equal(file["b"][:], values()["b"])
    assert zt.verify(store.url("m.zt"), storage_options=HTTP).ok
    loaded = zt.numpy.load_file(store.url("m.zt"), storage_options=HTTP)
    numpy.testing.assert_array_equal(loaded["a"], values()["a"])
    url = store.url("m.zt")
    assert zt.hash(url, storage_options=HTTP) == zt.hash(store.files["m.zt"])
    assert zt.diff(url, store.files["m.zt"], storage_options=HTTP).same


def test_convert_reads_and_writes_urls(store: Store, tmp_path: Path) -> None:
    store.files["m.zt"] = zt.numpy.save(values())
    target = f"file://{tmp_path}/out.safetensors"
    zt.convert(store.url("m.zt"), target, storage_options=HTTP)
    assert zt.hash(tmp_path / "out.safetensors") == zt.hash(store.files["m.zt"])
    with pytest.raises(zt.MisuseError) as raised:
        zt.convert(store.url("m.zt"), target, storage_options=HTTP)
    assert raised.value.code == "overwrite"
    zt.convert(store.url("m.zt"), target, overwrite=True, storage_options=HTTP)
    assert [path.name for path in tmp_path.iterdir()] == ["out.safetensors"]


def test_a_writer_writes_a_url_all_or_nothing(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/m.zt"
    with zt.Writer(url) as writer:
        writer.add("a", values()["a"])
    with pytest.raises(RuntimeError), zt.Writer(url) as writer:
        writer.add("b", values()["b"])
        raise RuntimeError
    assert list(zt.open(tmp_path / "m.zt")) == ["a"]
    zt.numpy.save_file(values(), url)
    numpy.testing.assert_array_equal(zt.numpy.load_file(url)["b"], values()["b"])
    assert [path.name for path in tmp_path.iterdir()] == ["m.zt"]


def test_a_web_server_takes_no_writes(store: Store) -> None:
    with pytest.raises(zt.UnsupportedError):
        zt.Writer(store.url("m.zt"), storage_options=HTTP)
    with pytest.raises(zt.UnsupportedError):
        zt.numpy.save_file(values(), store.url("m.zt"), storage_options=HTTP)


def test_connections_are_encrypted_by_default(store: Store) -> None:
    with pytest.raises(zt.MisuseError):
        zt.open(store.url("m.zt"))
    assert store.asked == []


def test_a_missing_object_is_a_missing_file_and_shows_no_secret(store: Store) -> None:
    url = store.url("m.zt").replace("//", "//user:SECRET@") + "?sig=SECRET"
    with pytest.raises(zt.MissingFileError) as raised:
        zt.open(url, storage_options=HTTP | {"aws_secret_access_key": "SECRET"})
    assert "SECRET" not in str(raised.value)
    assert "SECRET" not in str(raised.value.path)
