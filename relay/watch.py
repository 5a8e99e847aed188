"""What is watched around a leg: the repository, as `host/tripwire/fingerprint.py` sees it, and the run's own record."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from relay import confine
from relay.errors import RelayError
from relay.host import files, git
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.host.tripwire import fingerprint, guarded
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import boundary
from relay.terms import Plan, Receipt, Start

SEALED = ("receipt.json", "note.md", "reply.json", "document.md", "why.md")


def take(ledger: Ledger, plan: Plan, lease: Lease, *, tree: bool) -> dict[str, str]:
    """Return names and values of all that an agent might reach; `tree` adds the leg's own files.

    To those of the repository come `ledger/PATH`, what the run was promised and what was sealed so far, the run's
    own refs, and `runs/OTHER`, one value for each other run: an agent that rewrote them would steer its judges, or
    lose what they point at.
    """
    found = fingerprint.take(ledger.repo, lease, tree=tree, rung=confine.rung(plan)[0])
    folder = ledger.folder(plan.run)
    for path in _record(ledger, plan):
        found[f"ledger/{path.relative_to(folder)}"] = _sha256(path)
    with suppress(OSError, RelayError):
        refs = git.refs(ledger.repo, "refs/relay/")
        found |= {name: oid for name, oid in refs.items() if name.startswith(f"refs/relay/{plan.run}/")}
        found |= {f"runs/{run}": _other(ledger, run, refs) for run in ledgers.runs(ledger) if run != plan.run}
    return found


def _other(ledger: Ledger, run: str, refs: Mapping[str, str]) -> str:
    """Return one value for what another run was promised, sealed and kept: by lstat, for there may be many runs.

    A ctime cannot be set. A person's own act in that run changes the value too.
    """
    lines = [f"{name} {oid}" for name, oid in sorted(refs.items()) if name.startswith(f"refs/relay/{run}/")]
    legs = [leg for _, leg in ledgers.numbered(ledger, run) if (ledger.leg(run, leg) / "receipt.json").exists()]
    paths = [ledger.folder(run) / "plan.toml", *(ledger.leg(run, leg) / name for leg in legs for name in SEALED)]
    for path in paths:
        with suppress(OSError):
            state = path.lstat()
            lines.append(f"{path.parent.name}/{path.name} {state.st_mode} {state.st_size} {state.st_ctime_ns}")
    return files.sha256("\n".join(lines).encode())


def _record(ledger: Ledger, plan: Plan) -> Iterator[Path]:
    """Yield the files of a run that nobody changes any more."""
    folder = ledger.folder(plan.run)
    yield from (folder / name for name in ("plan.toml", *plan.files))
    for _, leg in ledgers.numbered(ledger, plan.run):
        if (ledger.leg(plan.run, leg) / "receipt.json").exists():
            yield from (ledger.leg(plan.run, leg) / name for name in SEALED)


def _sha256(path: Path) -> str:
    try:
        return files.sha256(files.read(path))
    except (OSError, RelayError):
        return "nothing"


def restore(ledger: Ledger, plan: Plan, start: Start, promised: bytes = b"") -> str:
    """Put back what an agent rewrote and what would act later: the plan, settings and hooks; say what was put back.

    The run goes on by what it was promised, or not at all.
    """
    path = ledger.folder(plan.run) / "plan.toml"
    if promised and _sha256(path) != files.sha256(promised):
        files.write(path, promised)
    folder = ledger.leg(plan.run, start.leg)
    if not confine.rung(plan)[0].holds and Path(start.worktree or "").name == start.leg:  # not a person's leg
        with suppress(OSError):
            (folder / guarded.KEPT).mkdir(0o700)  # an agent may have removed it
    done, left = guarded.put_back(ledger.repo, folder, start.fingerprint)
    said = [f"put back: {_named(done)}; what stood there is in `{folder / guarded.EVIDENCE}`"] if done else []
    return "; ".join(said + ([f"changed, and not put back: {_named(left)}"] if left else []))


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def voided(repo: Repository, receipt: Receipt, late: boundary.Crossed, restored: str) -> Receipt:
    """Void a leg whose own code crossed the boundary while Relay ran it; its commit is kept as `LEG.void`."""
    name = f"refs/relay/{receipt.run}/{receipt.leg}"
    if receipt.kind == "work":
        git.put_ref(repo, f"{name}.void", receipt.head)
        git.delete_ref(repo, name, receipt.head)
    return msgspec.structs.replace(
        receipt,
        ended_by="breach",
        breaches=late.breaches,
        drift=late.drift,
        verdict="inconclusive" if receipt.kind == "judge" else None,
        status=None,
        problem="; ".join(filter(None, ("commands that Relay ran on this tree changed what they may not", restored))),
    )
