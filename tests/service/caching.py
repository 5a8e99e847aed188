"""What a service that caches prompts would have had in its cache, counted in bytes.

A request is a row of parts, in the order in which a cache sees them: tools, system, messages (each block of content is
one). Anthropic keeps the prefix that ends at each part with a mark (`cache_control`), and reads the longest kept one
which ends at most 20 parts before a mark. OpenAI keeps every prefix by itself, for requests of the same
`prompt_cache_key`. Nothing expires here, and no prefix is too short to be kept.
"""

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tests.service.anthropic import blocks
from tests.service.conversation import Json
from tests.service.responses import items

LOOKBACK: Final = 20
"""So many parts, the marked one first, are looked at before a mark."""

TOKEN: Final = 4
"""Bytes, about."""

_REMEMBERED: Final = 8
"""So many requests are kept to recognise the beginning of the next one, which saves writing it out again."""


class Counted(Protocol):
    """What is needed of a request."""

    @property
    def path(self) -> str:
        """Return where it went to."""

    @property
    def body(self) -> Json:
        """Return what it asked."""

    @property
    def accepted(self) -> bool:
        """Tell whether the service began to answer it."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """All prefixes of one request: `ends[n]` and `keys[n]` are of the one that ends with part n."""

    parts: Sequence[tuple[str, Any]]
    ends: Sequence[int]
    """Bytes from the start."""
    keys: Sequence[int]
    """Equal where all is equal up to there."""
    marks: Sequence[int]
    """The parts that carry a mark, for Anthropic."""
    opening: int
    """The first part that belongs to the conversation."""
    pool: str | None
    """What separates caches that keep by themselves; None where marks are needed."""

    def before(self, part: int) -> int:
        """Return the bytes up to the end of a part; -1 is before all of them."""
        return self.ends[part] if part >= 0 else 0


class Cache:
    """The prefixes that were kept; safe to use from several threads."""

    def __init__(self) -> None:
        self._kept: set[tuple[str | None, int]] = set()
        self._recent: list[Prefixes] = []
        self._lock = threading.Lock()

    def prefixes(self, path: str, body: Json) -> Prefixes:
        """Return the prefixes of a request."""
        with self._lock:
            recent = list(self._recent)
        row = list(_messages(body) if path.endswith("/messages") else _automatic(body))
        parts = [(seed, part) for seed, part, _, _ in row]
        ends, keys = _known(parts, recent)
        for seed, part in parts[len(ends) :]:
            text = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
            ends.append((ends[-1] if ends else 0) + len(text.encode(errors="surrogatepass")))
            keys.append(hash((keys[-1] if keys else 0, seed, text)))
        marks = [at for at, (_, _, marked, _) in enumerate(row) if marked]
        opening = next((at for at, (_, _, _, opens) in enumerate(row) if opens), len(row))
        if body.get("cache_control") and row:
            marks.append(len(row) - 1)
        pool = None if path.endswith("/messages") else f"{body.get('prompt_cache_key')}"
        made = Prefixes(parts, ends, keys, marks, opening, pool)
        with self._lock:
            self._recent = [made, *self._recent][:_REMEMBERED]
        return made

    def read(self, asked: Prefixes) -> int:
        """Return the last part of the longest kept prefix that a request reads, or -1."""
        with self._lock:
            for at in _looked_at(asked):
                if (asked.pool, asked.keys[at]) in self._kept:
                    return at
        return -1

    def keep(self, asked: Prefixes) -> None:
        """Keep the prefixes of a request that is answered."""
        ends = range(len(asked.keys)) if asked.pool is not None else asked.marks
        with self._lock:
            self._kept.update((asked.pool, asked.keys[at]) for at in ends)

    def tokens(self, path: str, body: Json) -> tuple[int, int, int]:
        """Return the tokens of a request: all, read from the cache, written to it; and keep what it lets be kept."""
        asked = self.prefixes(path, body)
        total, read = asked.before(len(asked.ends) - 1) // TOKEN, asked.before(self.read(asked)) // TOKEN
        written = max(0, asked.before(max(asked.marks)) // TOKEN - read) if asked.marks else 0
        self.keep(asked)
        return total, read, written


def uncovered(requests: Iterable[Counted], *, across: bool = False) -> list[int]:
    """Return, for each request, the bytes at its start that were sent before and are not read from the cache.

    Sent before means: whole parts, in the same order from the start, in one earlier request of the same conversation
    (with the same first message; `across=True`: of any). Requests that the service did not begin to answer are neither
    counted as sent before nor keep anything.
    """
    cache, lost = Cache(), []
    sent: set[int] = set()
    for request in requests:
        asked = cache.prefixes(request.path, request.body)
        last = len(asked.keys) - 1
        while last >= 0 and asked.keys[last] not in sent:
            last -= 1
        counts = across or last >= asked.opening
        read = asked.before(cache.read(asked))
        lost.append(max(0, asked.before(last) - read) if counts else 0)
        if request.accepted:
            cache.keep(asked)
            sent.update(asked.keys)
    return lost


def _looked_at(asked: Prefixes) -> Iterator[int]:
    """Yield the parts whose prefix may be in the cache, the last one first."""
    if asked.pool is not None:
        yield from range(len(asked.keys) - 1, -1, -1)
        return
    for mark in sorted(asked.marks, reverse=True):
        yield from range(mark, max(-1, mark - LOOKBACK), -1)


def _known(parts: Sequence[tuple[str, Any]], recent: Sequence[Prefixes]) -> tuple[list[int], list[int]]:
    """Return the ends and keys of the parts that a recent request began with too."""
    best, by = 0, None
    for earlier in recent:
        common = 0
        for mine, theirs in zip(parts, earlier.parts, strict=False):
            if mine != theirs:
                break
            common += 1
        if common > best:
            best, by = common, earlier
        if common == len(earlier.parts):
            break
    return (list(by.ends[:best]), list(by.keys[:best])) if by else ([], [])


Part = tuple[str, Any, bool, bool]
"""What else the prefix depends on, the part itself, whether it has a mark, whether it is of the conversation."""


def _messages(body: Json) -> Iterator[Part]:
    """Yield the parts of a request to Anthropic."""
    seed = str(body.get("model"))
    for block in [*(body.get("tools") or ()), *blocks(body.get("system"))]:
        bare, marked = _bare(block)
        yield seed, bare, marked, False
        seed = ""
    seed += json.dumps([body.get("tool_choice"), body.get("thinking")])
    for message in body.get("messages") or ():
        for block in blocks(message["content"]):
            bare, marked = _bare(block)
            yield seed + message["role"], bare, marked, True
            seed = ""


def _automatic(body: Json) -> Iterator[Part]:
    """Yield the parts of a request to OpenAI."""
    seed = json.dumps([body.get("model"), (body.get("text") or {}).get("format"), body.get("response_format")])
    before = [*(body.get("tools") or ()), *([body["instructions"]] if body.get("instructions") else [])]
    for part in before:
        yield seed, part, False, False
        seed = ""
    said = items(body) if "input" in body else body.get("messages") or ()
    for item in said:
        opens = item.get("role") not in {"system", "developer"}
        yield seed, item, False, opens
        seed = ""


def _bare(block: Any) -> tuple[Any, bool]:  # noqa: ANN401 - JSON
    """Return a block without marks, its own and those inside, and whether it had any."""
    if not isinstance(block, dict):
        return block, False
    marked = "cache_control" in block
    bare = {name: value for name, value in block.items() if name != "cache_control"} if marked else block
    if isinstance(bare.get("content"), list):
        inner = [_bare(part) for part in bare["content"]]
        if any(had for _, had in inner):
            return bare | {"content": [part for part, _ in inner]}, True
    return bare, marked
