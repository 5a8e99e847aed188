"""A real browser without a window, and a server that counts what it fetches."""

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

PROGRAM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needed: Final = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed here")
ALONE: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars"),
)


def dump(url: str, *flags: str) -> str:
    """Open an address, let whatever is on it run, and return the document as it then stands."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [PROGRAM, *ALONE, f"--user-data-dir={profile}", "--virtual-time-budget=2000", *flags, "--dump-dom", url],
            capture_output=True,
            check=True,
            timeout=120,
        )
    return done.stdout.decode("utf-8", "replace")


@dataclass
class Server:
    """A server on loopback: `pages` are what it has; everything else that is asked of it is a hit."""

    url: str
    pages: dict[str, str] = field(default_factory=dict)
    hits: list[str] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[Server]:
    """Serve until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = found.pages.get(self.path)
            if page is None:
                found.hits.append(self.path)
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write((page or "").encode("utf-8", "replace"))

        do_POST = do_GET  # noqa: N815 - the library's own name

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Server(url=f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Seen(HTMLParser):
    """The elements and attributes of a document, and its title."""

    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    title: str = ""

    def __post_init__(self) -> None:
        """Begin as the library does."""
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "title" and not self.title:
            self.title = data


def look(document: str) -> Seen:
    """Take a document apart."""
    seen = Seen()
    seen.feed(document)
    return seen


def wide(page: str, width: int, *flags: str) -> tuple[int, str]:
    """Return how many pixels wide a page is in a window of that width, and its background there."""
    frame = (
        f"<iframe src='/page' width={width} height=900 style='border:0'></iframe><script>onload = () => {{"
        "const page = frames[0].document; document.title = page.documentElement.scrollWidth + '|' + "
        "frames[0].getComputedStyle(page.body).backgroundColor; }</script>"
    )
    with serving() as server:
        server.pages |= {"/page": page, "/": f"<!doctype html><title>none</title>{frame}"}
        pixels, _, colour = look(dump(f"{server.url}/", *flags)).title.partition("|")
    return int(pixels), colour


def saved(folder: Path, page: str) -> str:
    """Write a page to a file, and return its address."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()
