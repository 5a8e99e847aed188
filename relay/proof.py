"""What the evidence of a reply is worth: Relay looks at the places it names, and runs the commands it brings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from relay import clean, confine
from relay.confine import Place
from relay.hollow import constant
from relay.host import files, git, redact, scan
from relay.host.jail import Access
from relay.record.ledger import Ledger
from relay.rules import findings as rules
from relay.terms import (
    Check,
    ClaimedFinding,
    CriterionResult,
    Disputed,
    Finding,
    JudgeReply,
    Placed,
    Plan,
    Quoted,
    Repro,
    Settled,
    WorkReply,
)

SECONDS: Final = 300
"""How long a command of a reply may take; one that needs longer shows nothing."""

TAKEN: Final = re.compile(r"\b\d+\.\d+ ?(?:s|sec|seconds)\b")
"""How programs write the time they took."""


class Trees:
    """Clean checkouts of one commit, for the commands of one reply; to be used in a `with`.

    In a jail their writes vanish with them, so there is one checkout for all of them; in the open each has its own.
    """

    def __init__(self, ledger: Ledger, plan: Plan, leg: str, commit: str, base: str) -> None:
        self.ledger, self.plan, self.leg, self.commit, self.base = ledger, plan, leg, commit, base
        self._shared: dict[str, Place] = {}
        self._count = 0
        self._texts: dict[str, str | None] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Begin; the first checkout is made when it is asked for."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what is left."""
        self._stack.close()

    def text(self, path: str) -> str | None:
        """Return a file of the commit as text, or None where there is no such file."""
        if path not in self._texts:
            data = git.blob(self.ledger.repo, self.commit, path)
            self._texts[path] = data.decode("utf-8", "replace") if data is not None else None
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

    def reproduces(self, repro: Repro) -> tuple[bool, tuple[str, ...]]:
        """Run a repro with the files it brings: whether it did as it says, and what it came to, without the place."""
        with self._place(self.commit, "repro", setup=True) as at:
            return _reproduces(self.plan, at, repro)

    def hollow(self, repro: Repro, came_to: tuple[str, ...]) -> bool:
        """Tell whether a repro comes to the same where there is no tree at all, so that it shows nothing of this one.

        Set-up is not run there: what needs it comes to something else.
        """
        with self._place(clean.nothing(self.ledger), "empty", setup=False) as at:
            return _reproduces(self.plan, at, repro)[1] == came_to


def _reproduces(plan: Plan, at: Place, repro: Repro) -> tuple[bool, tuple[str, ...]]:
    """Run a repro in a folder; what it brings is gone afterwards."""
    with _brought(at, repro.files) as whole:
        if not whole:
            return False, ()
        check, output = clean.run(plan, at, repro.command, by="repro", seconds=SECONDS)
    shown = TAKEN.sub("", output.replace(str(at.folder), ""))
    return check.ended == "exit" and rules.reproduced(repro, check.exit, output), (check.ended, str(check.exit), shown)


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
            missing = [path for path in target.parents if not path.exists()]
            for path in reversed(missing):
                path.mkdir()
                made.append(path)
            before.setdefault(target, target.read_bytes() if target.exists() else None)
            target.write_text(text, encoding="utf-8")
    except (OSError, ValueError):
        return False
    return True


def look(trees: Trees, claims: Sequence[ClaimedFinding], *, own: bool) -> list[rules.Seen]:
    """Look at the evidence of each finding: the place it names, and its repro if it has one.

    `own` says that the repro is the judge itself, a command of the person's: it is no constant of an agent's.
    """
    return [_seen(trees, claim, own=own) for claim in claims]


def _seen(trees: Trees, claim: ClaimedFinding, *, own: bool) -> rules.Seen:
    """Look at one finding. A repro that comes out otherwise speaks against it; one that shows nothing leaves the place.

    A finding about the tree as it is names `.` and quotes nothing; only a repro can show it.
    """
    lines = rules.place(claim.quote, trees.text(claim.path), claim.line)
    if claim.repro is None:
        return rules.Seen(proof="located" if lines else "unfounded", lines=lines)
    whole = claim.path == "." and not claim.quote
    if not (lines or whole) or (not own and constant(claim.repro.command)):
        return rules.Seen(proof="unfounded", lines=lines)
    shown, came_to = trees.reproduces(claim.repro)
    if shown and not own and trees.hollow(claim.repro, came_to):
        return rules.Seen(proof="located" if lines else "unfounded", lines=lines)
    return rules.Seen(proof="confirmed" if shown else "unfounded", lines=lines)


def settle(
    trees: Trees, known: Sequence[rules.Known], found: Sequence[Finding], *, own: bool
) -> tuple[tuple[Finding, ...], tuple[Settled, ...]]:
    """Look at the findings that a judge names no more: those whose repro still fails are kept, the others are settled.

    A judge that is a command was run just now, and would have named what it still finds.
    """
    kept, settled = [], []
    for one in rules.unnamed(known, found):
        lines = rules.place(one.quote, trees.text(one.path), one.line)
        runs = one.evidence == "confirmed" and one.repro is not None and (lines is not None or not one.quote)
        again = (not own and trees.reproduces(one.repro)[0]) if runs and one.repro else None
        how = rules.settlement(one, lines, again=again)
        if how is None:
            kept.append(rules.kept(one, lines))
        else:
            settled.append(Settled(id=one.id, how=how))
    return tuple(kept), tuple(settled)


def placed(trees: Trees, existing: Sequence[Quoted]) -> tuple[Placed, ...]:
    """Look up each place that a reply says exists; an invented file, field or value falls here."""
    lines = [rules.place(one.quote, trees.text(one.path), 1) for one in existing]
    return tuple(Placed(path=one.path, line=at[0] if at else None) for one, at in zip(existing, lines, strict=True))


def invented(existing: Sequence[Quoted], found: Sequence[Placed]) -> tuple[Check, str] | None:
    """Return a red check where places that a reply says exist are not there, and what lists them."""
    pairs = zip(existing, found, strict=True)
    lines = [f"{one.path}: {' '.join(one.quote.split())[:200]}" for one, at in pairs if at.line is None]
    if not lines:
        return None
    return red("what the reply lists under `existing` is there", "\n".join(["these are not there:", *lines]))


def criterion(trees: Trees, result: CriterionResult, reply: JudgeReply) -> CriterionResult:
    """Settle a criterion that no command of the spec decides: the judge's answer, if its evidence holds.

    A criterion that the judge passed over, or called met without evidence that stands, stays judged by nobody.
    """
    if result.by == "relay":
        return result
    claim = next((item for item in reply.criteria if item.id == result.id), None)
    if claim is None:
        return result
    judged = msgspec.structs.replace(result, by="judge", met=claim.met)
    if not claim.met:
        return judged
    if claim.command and not constant(claim.command):
        check, _ = trees.run(claim.command, result.id)
        return msgspec.structs.replace(
            judged,
            met=check.exit == 0,
            command=redact.own().text(claim.command),
            exit=check.exit,
            output_sha256=check.output_sha256,
        )
    lines = rules.place(claim.quote or "", trees.text(claim.path), 1) if claim.path else None
    return msgspec.structs.replace(judged, path=claim.path, line=lines[0]) if lines else result


def disputes(plan: Plan, at: Place, reply: WorkReply, known: Sequence[str]) -> tuple[Disputed, ...]:
    """Run the command of each dispute where the work stands: the next judge is told what it did."""
    found = []
    for one in reply.disputes:
        if one.finding not in known:
            continue
        if not one.command:
            found.append(Disputed(id=one.finding))
            continue
        check, _ = clean.run(plan, at, one.command, by=f"dispute {one.finding}", seconds=SECONDS)
        command = redact.own().text(one.command)
        found.append(Disputed(id=one.finding, command=command, exit=check.exit, output_sha256=check.output_sha256))
    return tuple(found)


def red(what: str, output: str) -> tuple[Check, str]:
    """Make the check of something that Relay looked at by itself, and what it saw."""
    return Check(by="relay", command=what, exit=1, seconds=0.0, output_sha256=files.sha256(output.encode())), output
