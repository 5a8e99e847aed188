"""The ledger: all runs of a repository. The only file that knows paths inside it, and the order of writes.

What may be relied on, whenever Relay is killed: a run's folder exists whole or not at all; a receipt exists only when
its note, its reply and its commit do; a receipt is never rewritten; each names the one before it by hash.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.errors import Exit, RelayError
from relay.host import files
from relay.host.repository import Repository
from relay.record import plan_file, receipt
from relay.terms import SCHEMA, Plan, Receipt, Start, Struct

README: Final = b"""This folder is Relay's ledger: what its runs did in this repository, told by receipts.
It belongs to Relay and cannot be committed by accident; `git clean` does not reach it.
`relay status` lists the runs, `relay trace RUN` tells one, `relay verify RUN` checks its hashes.
Removing it loses the record, not the commits: those stay under refs/relay/.
"""
LEG: Final = re.compile(r"(\d{2,})-([a-z0-9-]+)")


class Ledger(Struct, frozen=True, kw_only=True):
    """The ledger of one repository; opening it touches nothing."""

    repo: Repository
    root: Path

    @property
    def lock(self) -> Path:
        """Return the repository's lock: one run in progress."""
        return self.root / "lock"

    @property
    def queue(self) -> Path:
        """Return the folder of the queue's entries."""
        return self.root / "queue"

    @property
    def nights(self) -> Path:
        """Return the folder of the nights: their records, their pages, and the lock of the one in progress."""
        return self.root / "nights"

    @property
    def alerts(self) -> Path:
        """Return the folder of what was raised to a person."""
        return self.root / "alerts"

    def folder(self, run: str) -> Path:
        """Return the folder of a run."""
        return self.root / "runs" / run

    def run_lock(self, run: str) -> Path:
        """Return the run's lock: held for every append."""
        return self.folder(run) / "lock"

    def legs(self, run: str) -> Path:
        """Return the folder of a run's legs and acts."""
        return self.folder(run) / "legs"

    def leg(self, run: str, leg: str) -> Path:
        """Return the folder of one leg or act."""
        return self.legs(run) / leg

    def leg_lock(self, run: str, leg: str) -> Path:
        """Return the leg's lock: held while its agent lives."""
        return self.legs(run) / f"{leg}.lock"

    def worktree(self, run: str, leg: str) -> Path:
        """Say where a leg's worktree lies: outside the checkout, under the person's state folder."""
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", (self.repo.main_top or self.repo.common).name)[:32].strip("-.") or "repo"
        digest = files.sha256(os.fsencode(self.repo.common))[:8]
        return files.state_home() / "relay" / "worktrees" / f"{name}-{digest}" / run / leg


def at(repo: Repository) -> Ledger:
    """Return the ledger of a repository, which need not exist yet."""
    return Ledger(repo=repo, root=repo.common / "relay")


def prepare(ledger: Ledger) -> None:
    """Make the ledger's folder, or refuse one of an unknown format, or at a path that no receipt could name."""
    for folder in (ledger.root, files.state_home()):
        if any("\ud800" <= letter <= "\udfff" for letter in str(folder)):
            raise RelayError(f"the path `{folder}` is not UTF-8, and receipts are", hint="move it to a path that is")
    path = ledger.root / "format"
    try:
        found = files.read(path).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        for folder in (ledger.root, ledger.root / "runs"):
            folder.mkdir(0o700, exist_ok=True)
        files.write(ledger.root / "README", README)
        files.write(path, f"{SCHEMA}\n".encode())
        files.sync_folder(ledger.root)
        return
    if found != str(SCHEMA):
        raise RelayError(
            f"the ledger `{ledger.root}` has format `{found}`, and this version reads {SCHEMA}",
            hint="use the version of Relay that wrote it",
        )


def runs(ledger: Ledger) -> list[str]:
    """Return the ids of all runs, oldest first."""
    try:
        found = [entry for entry in os.scandir(ledger.root / "runs") if not entry.name.startswith(".")]
    except FileNotFoundError:
        return []
    return [entry.name for entry in sorted(found, key=_age)]


def _age(run: "os.DirEntry[str]") -> tuple[str, int, str]:
    """Order runs by the minute in their id; those of one minute by when their plan was written, which is once."""
    try:
        written = Path(run.path, "plan.toml").stat().st_mtime_ns
    except OSError:
        written = 0
    return run.name[:11], written, run.name


def find(ledger: Ledger, wanted: str) -> str:
    """Return the run that a person means: its id, or a part of it that fits only one."""
    known = runs(ledger)
    if wanted in known:
        return wanted
    fitting = [run for run in known if wanted and wanted in run]
    if len(fitting) == 1:
        return fitting[0]
    what = f"`{wanted}` fits {len(fitting)} runs: {', '.join(fitting[:5])}" if fitting else f"no run `{wanted}` here"
    raise RelayError(what, hint="relay status")


def read_plan(ledger: Ledger, run: str) -> Plan:
    """Read a run's frozen plan; a frozen file that changed since the start is refused by name (exit 6)."""
    return _plan_and_hash(ledger, run)[0]


def _plan_and_hash(ledger: Ledger, run: str) -> tuple[Plan, str]:
    """Return the plan and the hash that the first receipt carries as `prev`."""
    path = ledger.folder(run) / "plan.toml"
    try:
        data = files.read(path)
    except FileNotFoundError:
        text, hint = f"run `{run}` has no plan: `{path}` is missing", "restore it, or start anew with `relay run`"
        raise RelayError(text, hint=hint, exit_code=Exit.GATE) from None
    plan = plan_file.decode(data, str(path))
    for name, expected in plan.files.items():
        try:
            actual = files.sha256(files.read(ledger.folder(run) / name))
        except FileNotFoundError:
            actual = "nothing"
        if actual != expected:
            raise RelayError(
                f"a frozen file of run `{run}` is not what it was at the start: `{ledger.folder(run) / name}`",
                hint="restore it, or start anew with `relay run`",
                exit_code=Exit.GATE,
            )
    return plan, files.sha256(data)


def frozen(ledger: Ledger, run: str, name: str) -> bytes:
    """Read one frozen file of a run, by its name in the plan."""
    return files.read(ledger.folder(run) / name)


def numbered(ledger: Ledger, run: str) -> list[tuple[int, str]]:
    """Return the legs and acts that have a folder, in number order."""
    try:
        names = [entry.name for entry in os.scandir(ledger.legs(run)) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    return sorted((int(match[1]), match[0]) for name in names if (match := LEG.fullmatch(name)))


def receipts(ledger: Ledger, run: str) -> tuple[Receipt, ...]:
    """Read all receipts in number order and check that each names the one before it; a break is refused (exit 6)."""
    return read(ledger, run)[1]


def read(ledger: Ledger, run: str) -> tuple[Plan, tuple[Receipt, ...]]:
    """Read a run's plan and its receipts in one go: what `read_plan` and `receipts` give, and what they refuse."""
    plan, prev = _plan_and_hash(ledger, run)
    return plan, _chain(ledger, run, prev)[0]


def _chain(ledger: Ledger, run: str, prev: str) -> tuple[tuple[Receipt, ...], str]:
    """Return all receipts, and the hash that the next one carries as `prev`; the first one's is the plan's.

    Hashes are of the bytes on disk: another version of Relay may write the same receipt with more fields.
    """
    found: list[Receipt] = []
    for path, data in _sealed(ledger, run):
        sealed = receipt.decode(data, Receipt, str(path))
        if sealed.prev != prev or sealed.run != run or sealed.leg != path.parent.name:
            raise RelayError(
                f"the chain of receipts breaks at `{path}`: it, or the one before it, is not what was sealed",
                hint=f"relay verify {run}",
                exit_code=Exit.GATE,
            )
        prev = files.sha256(data)
        found.append(sealed)
    return tuple(found), prev


def _sealed(ledger: Ledger, run: str) -> Iterator[tuple[Path, bytes]]:
    """Yield each receipt's path and bytes, in number order; legs that nobody sealed are passed over."""
    for _, leg in numbered(ledger, run):
        path = ledger.leg(run, leg) / "receipt.json"
        try:
            yield path, files.read(path)
        except FileNotFoundError:
            continue


def unsealed(ledger: Ledger, run: str) -> list[Start]:
    """Return the starts without a receipt: what somebody began and did not finish."""
    found = []
    for _, leg in numbered(ledger, run):
        folder = ledger.leg(run, leg)
        if (folder / "start.json").exists() and not (folder / "receipt.json").exists():
            found.append(receipt.decode(files.read(folder / "start.json"), Start, str(folder / "start.json")))
    return found


def newest_start(ledger: Ledger, run: str) -> Start | None:
    """Return the start of the newest leg or shipment that has one, sealed or not."""
    for _, leg in reversed(numbered(ledger, run)):
        path = ledger.leg(run, leg) / "start.json"
        with suppress(FileNotFoundError):
            return receipt.decode(files.read(path), Start, str(path))
    return None


def begin(ledger: Ledger, start: Start) -> None:
    """Write start.json, the intent; called again as more of the circumstances are known."""
    folder = ledger.leg(start.run, start.leg)
    fresh = not folder.exists()
    folder.mkdir(0o700, parents=True, exist_ok=True)
    files.write(folder / "start.json", receipt.encode(start))
    files.sync_folder(folder)
    if fresh:
        files.sync_folder(folder.parent)


def next_leg_id(ledger: Ledger, run: str, name: str) -> str:
    """Return the id of the next leg or act: one sequence of numbers, two digits at least."""
    taken = [
        number
        for number, leg in numbered(ledger, run)
        if (ledger.leg(run, leg) / "start.json").exists() or (ledger.leg(run, leg) / "receipt.json").exists()
    ]
    return f"{max(taken, default=0) + 1:02d}-{name}"


def seal(ledger: Ledger, sealed: Receipt, beside: Mapping[str, bytes]) -> Receipt:
    """Write what a receipt names by hash, then the receipt, last; the folder is fsynced once before and once after.

    The caller holds the run's lock and has made the commit and its ref. `prev` is filled in here, under that lock.
    """
    folder = ledger.leg(sealed.run, sealed.leg)
    folder.mkdir(0o700, parents=True, exist_ok=True)
    path = folder / "receipt.json"
    if path.exists():
        hint = f"somebody else wrote it: look at it, then move it away: cat {path}"
        raise RelayError(f"a receipt is never rewritten: `{path}`", hint=hint, exit_code=Exit.GATE)
    for name, data in beside.items():
        files.write(folder / name, data)
    files.sync_folder(folder)
    files.sync_folder(folder.parent)
    done = receipt.chained(sealed, _chain(ledger, sealed.run, _plan_and_hash(ledger, sealed.run)[1])[1])
    files.write(path, receipt.encode(done))
    files.sync_folder(folder)
    return done
