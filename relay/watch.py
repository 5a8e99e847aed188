"""What is watched around a leg: the repository, as `host/fingerprint.py` sees it, and the run's own record."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from relay import confine
from relay.errors import RelayError
from relay.host import files, fingerprint, git, guarded
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import boundary
from relay.terms import Plan, Receipt, Start

SEALED = ("receipt.json", "note.md", "reply.json", "document.md", "why.md")


def take(ledger: Ledger, plan: Plan, lease: Lease, *, tree: bool) -> dict[str, str]:
    """Return names and values of all that an agent might reach; `tree` adds the leg's own files.

    To those of the repository come `ledger/PATH`, what the run was promised and what was sealed so far, and the
    run's own refs: an agent that rewrote them would steer its judges, or lose what they point at.
    """
    found = fingerprint.take(ledger.repo, lease, tree=tree, rung=confine.rung(plan)[0])
    folder = ledger.folder(plan.run)
    for path in _record(ledger, plan):
        found[f"ledger/{path.relative_to(folder)}"] = _sha256(path)
    with suppress(RelayError):
        found |= git.refs(ledger.repo, f"refs/relay/{plan.run}/")
    return found


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
    done = guarded.put_back(ledger.repo, folder, start.fingerprint)
    said = ", ".join(f"`{name}`" for name in done)
    return f"put back: {said}; what stood there is in `{folder / guarded.EVIDENCE}`" if done else ""


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
