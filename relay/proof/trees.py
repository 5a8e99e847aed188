"""Clean checkouts of one commit, in which Relay runs the commands that a reply brings."""

import itertools
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from relay import clean, confine
from relay.confine import Place
from relay.host import clock, git, scan
from relay.host.jail import Access
from relay.proof.quotes import Text
from relay.record.ledger import Ledger
from relay.rules import findings as rules
from relay.terms import Check, Plan, Repro, Struct

SECONDS: Final = 300
"""How long a command of a reply may take; one that needs longer shows nothing."""

IN_ALL: Final = 900
"""How long all repros of one verdict may take together, their checkouts too, in seconds; the rest is not run."""

NOT_RUN: Final = frozenset({126, 127})
"""How a shell says that it could not run a command."""

LATE: Final = f"the {IN_ALL} s that all repros of a verdict may take are used up"


class Tried(Struct, frozen=True, kw_only=True):
    """What a repro came to: whether it `showed` what it says, and all it came to, without the place.

    `why` says why it did not run to its end; it is `late` where there was no time left for it.
    """

    showed: bool = False
    came_to: tuple[str, str, str] = ("", "", "")
    why: str = ""
    late: bool = False

    @property
    def complains(self) -> bool:
        """Tell whether it ended with something else than 0 and said something."""
        return self.came_to[1] != "0" and bool(self.came_to[2].strip())


class Trees:
    """Clean checkouts of one commit, for the commands of one reply; to be used in a `with`.

    In a jail their writes vanish with them, so there is one checkout for all of them; in the open each has its own.
    `seconds` is what is left for repros, and `late` says that it was not enough. The same repro is run once.
    """

    def __init__(self, ledger: Ledger, plan: Plan, leg: str, commit: str, base: str, seconds: float = IN_ALL) -> None:
        self.ledger, self.plan, self.leg, self.commit, self.base = ledger, plan, leg, commit, base
        self.seconds = seconds
        self.late = False
        self._shared: dict[str, Place] = {}
        self._count = 0
        self._texts: dict[str, Text | None] = {}
        self._tried: dict[bytes, Tried] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Begin; the first checkout is made when it is asked for."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what is left."""
        self._stack.close()

    def path(self, told: str) -> str:
        """Return a path as the commit has it: blanks around it count where a file is named so."""
        whole = posixpath.normpath(told) if told else ""
        return whole if self._text(whole) is not None else rules.plain(told)

    def text(self, path: str) -> Text | None:
        """Return a file of the commit as text, or None where there is no such file."""
        return self._text(self.path(path))

    def raw(self, path: str) -> str | None:
        """Return a file of the commit as it is, or None where there is no such file."""
        text = self.text(path)
        return text.raw if text is not None else None

    def place(self, path: str, quote: str, near: int = 1) -> tuple[int, int] | None:
        """Return the first and last line where a quote stands in a file, the nearest to a line; None if nowhere."""
        text = self.text(path) if quote else None
        return text.place(quote, near) if text is not None else None

    def _text(self, path: str) -> Text | None:
        if path not in self._texts:
            data = git.blob(self.ledger.repo, self.commit, path)
            self._texts[path] = Text(data.decode("utf-8", "replace")) if data is not None else None
        return self._texts[path]

    @contextmanager
    def _place(self, commit: str, name: str, *, setup: bool) -> Iterator[Place]:
        """Give a checkout in which a command may do what it likes; `name` says what it is one of."""
        holds = confine.rung(self.plan)[0].holds
        if name not in self._shared or not holds:
            self._count += 1
            made = clean.checkout(
                *(self.ledger, self.plan, self.leg, commit, f"{name}-{self._count}", Access.SCRATCH),
                setup=setup,
                base=self.base,
            )
            if not holds:
                with made as at:
                    yield at
                return
            self._shared[name] = self._stack.enter_context(made)
        yield self._shared[name]

    def run(self, command: str, by: str) -> tuple[Check, str]:
        """Run a command of a reply in a checkout."""
        with self._place(self.commit, "repro", setup=True) as at:
            return clean.run(self.plan, at, command, by=by, seconds=SECONDS)

    def run_in_nothing(self, command: str, by: str) -> Check:
        """Run a command where there is no tree at all."""
        with self._place(clean.nothing(self.ledger), "empty", setup=False) as at:
            return clean.run(self.plan, at, command, by=by, seconds=SECONDS)[0]

    def tries(self, repro: Repro) -> Tried:
        """Run a repro with the files it brings."""
        return self._once(b"tree", repro)

    def tries_in_nothing(self, repro: Repro) -> Tried:
        """Run a repro where there is no tree at all: one that comes to the same there shows nothing of this tree.

        Set-up is not run there: what needs it comes to something else.
        """
        return self._once(b"none", repro)

    def _once(self, where: bytes, repro: Repro) -> Tried:
        """Run a repro, unless it ran there before, or there is no time left for any."""
        key = where + msgspec.json.encode(repro)
        if key not in self._tried:
            if self.seconds <= 0:
                self.late = True
                return Tried(why=LATE, late=True)
            began = clock.monotonic()
            here = where == b"tree"
            commit, name = (self.commit, "repro") if here else (clean.nothing(self.ledger), "empty")
            with self._place(commit, name, setup=here) as at:
                self._tried[key] = _tried(self.plan, at, repro, min(SECONDS, self.seconds))
            self.seconds -= clock.monotonic() - began
            self.late = self.late or self._tried[key].late
        return self._tried[key]


def _tried(plan: Plan, at: Place, repro: Repro, seconds: float) -> Tried:
    """Run a repro in a folder; what it brings is gone afterwards."""
    with _brought(at, repro.files) as whole:
        if not whole:
            return Tried(why="its files cannot be written")
        check, output = clean.run(plan, at, repro.command, by="repro", seconds=seconds)
    shown = output.replace(str(at.folder), "")
    late = check.ended == "timeout" and seconds < SECONDS
    why = LATE if late else unrun(check)
    return Tried(
        showed=not why and rules.reproduced(repro, check.exit, output),
        came_to=(check.ended, str(check.exit), shown),
        why=why,
        late=late,
    )


def unrun(check: Check) -> str:
    """Say why a command did not run to its end, in which case it shows nothing; an empty string where it did."""
    if check.ended != "exit":
        return f"it was ended for `{check.ended}` after {check.seconds:.0f} s"
    return f"it could not be run: exit {check.exit}" if check.exit < 0 or check.exit in NOT_RUN else ""


@contextmanager
def _brought(at: Place, brought: Mapping[str, str]) -> Iterator[bool]:
    """Write the files that a repro brings, all inside the checkout; yields whether they could be written.

    In a jail what stood there before is put back, for the next one. In the open the checkout goes, and a command may
    have put a link where it wrote.
    """
    before: dict[Path, bytes | None] = {}
    made: list[Path] = []
    try:
        yield _written(at.folder.resolve(), brought, before, made)
    finally:
        for path, data in before.items() if at.cell is not None else ():
            with suppress(OSError):
                path.unlink() if data is None else path.write_bytes(data)
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir()


def _written(folder: Path, brought: Mapping[str, str], before: dict[Path, bytes | None], made: list[Path]) -> bool:
    """Write files below a folder; `before` gets what stood at each path, `made` each new folder."""
    try:
        for name, text in brought.items():
            target = folder / name
            inside = target.parent.resolve().is_relative_to(folder) and ".git" not in Path(name).parts
            if not inside or scan.kind(str(target)) not in {"a file", "nothing"}:  # reading a FIFO would never end
                return False
            missing = itertools.takewhile(lambda path: not path.exists(), target.parents)
            for path in reversed([*missing]):
                path.mkdir()
                made.append(path)
            before.setdefault(target, target.read_bytes() if target.exists() else None)
            target.write_text(text, encoding="utf-8")
    except (OSError, ValueError):
        return False
    return True
