"""An index of packages on this machine, as pip, uv, npm and cargo read one: it counts what is fetched from it."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

WHEEL: Final = "tiny-1.0-py3-none-any.whl"
ABOUT: Final = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"


class Index:
    """What is offered, by path, and the paths of the packages that were fetched."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.fetched: list[str] = []
        tarball, crate = _tarball(), _crate()
        self.packages = {f"/{WHEEL}": _wheel(), "/tiny.tgz": tarball, "/crates/tiny/1.0.0/download": crate}
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
        dist = {"tarball": f"{self.url}/tiny.tgz", "integrity": integrity}
        npm = {"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": _npm(dist=dist)}}
        line = {"name": "tiny", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
        self.pages = {
            "/simple/tiny/": (f'<a href="/{WHEEL}" data-core-metadata="true">{WHEEL}</a>'.encode(), "text/html"),
            f"/{WHEEL}.metadata": (ABOUT.encode(), "text/plain"),
            "/tiny": (json.dumps(npm).encode(), "application/json"),
            "/index/config.json": (json.dumps({"dl": f"{self.url}/crates"}).encode(), "application/json"),
            "/index/ti/ny/tiny": (
                json.dumps(line | {"cksum": hashlib.sha256(crate).hexdigest()}).encode(),
                "text/plain",
            ),
        }


@contextmanager
def offered() -> Iterator[Index]:
    """Offer one tiny package in each way."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path in index.packages and self.command == "GET":
                index.fetched.append(path)
            data, kind = index.pages.get(path) or (index.packages.get(path), "application/octet-stream")
            self.send_response(404 if data is None else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data or b"")))
            self.send_header("Cache-Control", "max-age=3600")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data or b"")

        do_HEAD = do_GET  # noqa: N815  what http.server calls

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    index = Index(server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()


def _wheel() -> bytes:
    about = {
        "METADATA": ABOUT,
        "WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as wheel:
        wheel.writestr("tiny.py", "ONE = 1\n")
        for name, text in about.items():
            wheel.writestr(f"tiny-1.0.dist-info/{name}", text)
    return data.getvalue()


def _npm(**more: object) -> dict[str, object]:
    return {"name": "tiny", "version": "1.0.0", **more}


def _tarball() -> bytes:
    return _packed({"package/package.json": json.dumps(_npm())})


def _crate() -> bytes:
    manifest = '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n'
    return _packed({"tiny-1.0.0/Cargo.toml": manifest, "tiny-1.0.0/src/lib.rs": "pub fn one() -> u8 { 1 }\n"})


def _packed(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return data.getvalue()
