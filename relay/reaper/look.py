"""What the ledger says: every run with its plan, its receipts and what was begun; one that cannot be read says why."""

import fcntl
import os
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files, lock, worktree
from relay.record import ledger as ledgers
from relay.record import receipt
from relay.record.ledger import Ledger
from relay.rules import plan as rules
from relay.terms import Plan, Receipt, Start, Struct

POINTER: Final = 64 << 10
"""No `.git` of a worktree is longer, in bytes."""


class Run(Struct, frozen=True, kw_only=True):
    """One run. `problem` says why the rest is missing, `held` that a loop works on it now.

    `copied` names the repository that it belongs to, where this is a copy of that; `moved`, where this one was.
    """

    id: str
    plan: Plan | None = None
    chain: tuple[Receipt, ...] = ()
    starts: tuple[Start, ...] = ()
    step: rules.Next | None = None
    problem: str = ""
    copied: str = ""
    moved: str = ""
    held: bool = False

    @property
    def open(self) -> tuple[Start, ...]:
        """What was begun and is not sealed."""
        sealed = {one.leg for one in self.chain}
        return tuple(start for start in self.starts if start.leg not in sealed)

    @property
    def outcome(self) -> str:
        """How it stands; nothing where that cannot be told."""
        return rules.outcome(self.step) if self.step is not None else ""


class Home(Struct, frozen=True, kw_only=True):
    """One place where a leg works or worked: a folder on disk, an entry of git's, or both."""

    run: str
    path: Path
    entry: worktree.Entry | None = None

    @property
    def leg(self) -> str:
        """The leg it belongs to: as Relay wrote it down, for a worktree can be moved; else by its name."""
        return self.entry.said["leg"] if self.entry is not None else self._named

    @property
    def _named(self) -> str:
        return self.path.name.lstrip(".").partition(".")[0]

    @property
    def going(self) -> bool:
        """Whether it was set aside to be removed: that was decided then, and only the removal was cut short."""
        return self.path.name.startswith(".") and worktree.GOING in self.path.name

    @property
    def lost(self) -> bool:
        """Whether there is only an entry of git's, which does not say any more where its worktree is."""
        return self.entry is not None and self.path == self.entry.git_dir

    def moved(self, ledger: Ledger) -> bool:
        """Tell whether it is not where Relay put it: somebody moved it, and wants it."""
        there = self.path.parents[2:3] == (place(ledger).parent,)  # of whatever repository: this one may be moved too
        return not there or self.path.parent.name != self.run or self._named != self.leg


def runs(ledger: Ledger) -> list[Run]:
    """Read every run of the ledger."""
    holder = lock.holder(ledger.lock)
    held = holder.run if holder is not None else ""
    return [_run(ledger, run, held=run == held) for run in ledgers.runs(ledger)]


def again(ledger: Ledger, run: Run) -> Run:
    """Read a run once more, after something was sealed."""
    return _run(ledger, run.id, held=run.held)


def _run(ledger: Ledger, run: str, *, held: bool) -> Run:
    starts: list[Start] = []
    try:
        for _, leg in ledgers.numbered(ledger, run):
            path = ledger.leg(run, leg) / "start.json"
            if path.exists():
                starts.append(receipt.decode(files.read(path), Start, str(path)))
        plan, chain = ledgers.read_plan(ledger, run), ledgers.receipts(ledger, run)
    except (OSError, RelayError) as error:
        said = error.message if isinstance(error, RelayError) else str(error)
        return Run(id=run, starts=tuple(starts), problem=said, held=held)
    elsewhere = [start.common_dir for start in starts if start.common_dir != str(ledger.repo.common)]
    origin = elsewhere[-1] if elsewhere else ""
    there = bool(origin) and Path(origin, "relay", "runs", run).is_dir()
    return Run(
        id=run,
        plan=plan,
        chain=chain,
        starts=tuple(starts),
        step=rules.next_leg(plan, chain),
        copied=origin if there else "",
        moved="" if there else origin,
        held=held,
    )


def locked(path: Path) -> bool:
    """Tell whether anybody holds a lock, and one whose number means nobody here too: a loop in a container.

    Writes nothing.
    """
    if lock.holder(path) is not None:
        return True
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return isinstance(error, PermissionError)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def place(ledger: Ledger) -> Path:
    """Return the folder in which the worktrees of this repository lie, each in the folder of its run."""
    return ledger.worktree("run", "leg").parents[1]


def homes(ledger: Ledger) -> dict[str, list[Home]]:
    """Return every place of a leg, by run: what is on disk, and what git knows as Relay's."""
    entries = {entry.path: entry for entry in worktree.own(ledger.repo)}
    found: dict[Path, Home] = {}
    top = place(ledger)
    for folder in sorted(top.glob("*")) if top.is_dir() else ():
        if folder.is_dir() and not folder.is_symlink():
            for path in sorted(folder.iterdir()):
                entry = entries.pop(path, None) or entries.pop(_pointed(path), None)
                found[path] = Home(run=entry.said["run"] if entry else folder.name, path=path, entry=entry)
    for path, entry in entries.items():
        found[path] = Home(run=entry.said["run"], path=path, entry=entry)
    by_run: dict[str, list[Home]] = {}
    for home in found.values():
        by_run.setdefault(home.run, []).append(home)
    return by_run


def _pointed(path: Path) -> Path:
    """Return the entry that a worktree's `.git` names; the folder itself where it names none."""
    try:
        pointer = files.read(path / ".git", POINTER).removeprefix(b"gitdir:").strip()
        return Path(os.path.realpath(path / os.fsdecode(pointer)))
    except (OSError, RelayError, ValueError):
        return path
