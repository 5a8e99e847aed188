"""What a judge's findings are worth: the places that they name, and their repros, those of earlier rounds too."""

from collections.abc import Mapping, Sequence

import msgspec

from relay import hollow
from relay.proof.trees import LATE, Trees
from relay.rules import findings as rules
from relay.terms import ClaimedFinding, Finding, Repro, Settled


def named(trees: Trees, claims: Sequence[ClaimedFinding]) -> tuple[ClaimedFinding, ...]:
    """Write the path of each finding as the commit has it: `./a.py` and `a.py` are one place."""
    return tuple(msgspec.structs.replace(claim, path=trees.path(claim.path)) for claim in claims)


def look(
    trees: Trees, claims: Sequence[ClaimedFinding], *, own: bool, known: Sequence[rules.Known] = ()
) -> list[rules.Seen]:
    """Look at the evidence of each finding, the gravest first: its place, and its repro if it has one.

    Only what can block is worth a run: the repro of a `minor` or a `nit` would cost time and decide nothing. `own` says
    that the repro is the judge itself, a command of the person's: it is no constant of an agent's. What a repro is
    worth is not asked again where it showed one of the `known` findings.
    """
    worthy = [repro for one in known for repro in one.shown]
    order = sorted(range(len(claims)), key=lambda index: -rules.GRAVITY.index(claims[index].severity))
    seen = {index: _seen(trees, claims[index], worthy=own or claims[index].repro in worthy) for index in order}
    return [seen[index] for index in range(len(claims))]


def _seen(trees: Trees, claim: ClaimedFinding, *, worthy: bool) -> rules.Seen:
    """Look at one finding. A repro that comes out otherwise speaks against it; one that shows nothing leaves the place.

    A finding about the tree as it is names `.` and quotes nothing; only a repro can show it.
    """
    lines = trees.place(claim.path, claim.quote, claim.line)
    confirmed = rules.Seen(proof="confirmed", lines=lines)
    placed = rules.Seen(proof="located" if lines else "unfounded", lines=lines)
    if claim.repro is None or claim.severity not in rules.GRAVE:
        return placed
    whole = claim.path == "." and not claim.quote
    if not (lines or whole) or (not worthy and hollow.constant(claim.repro.command, claim.repro.files)):
        return rules.Seen(proof="unfounded", lines=lines)
    tried = trees.tries(claim.repro)
    if not tried.showed and not tried.late:
        return rules.Seen(proof="unfounded", lines=lines)
    why = LATE * tried.late or ("" if worthy else _hollow(trees, claim.path, claim.repro))
    return msgspec.structs.replace(placed, why=f"its repro shows nothing: {why}") if why else confirmed


def _hollow(trees: Trees, path: str, repro: Repro) -> str:
    """Say why a repro that did what it says shows nothing of a file all the same, or that there is no time to tell."""
    why = hollow.why(repro, path, trees.raw(path), here=trees.tries, nowhere=trees.tries_in_nothing)
    return why or LATE * trees.late


def again(trees: Trees, known: Sequence[rules.Known], *, own: bool) -> dict[str, rules.Again]:
    """Run the repros of the open findings that Relay saw fail and that block, the gravest first.

    A judge that is a command was run just now: what it still finds, it names.
    """
    shown = [one for one in known if one.open and one.evidence == "confirmed" and one.severity in rules.GRAVE]
    shown.sort(key=lambda one: -rules.GRAVITY.index(one.severity))
    if own:
        return {one.id: rules.Again(did="green") for one in shown}
    return {one.id: _again(trees, one) for one in shown if one.shown}


def _again(trees: Trees, known: rules.Known) -> rules.Again:
    """Run the repros of one finding: one that still fails is enough, and all of them have to be green."""
    lines, whys = trees.place(known.path, known.quote, known.line), []
    for repro in known.shown:
        tried = trees.tries(repro)
        if tried.showed:
            return rules.Again(did="shows", lines=lines)
        if tried.why:
            whys.append(tried.why)
        elif tried.complains:
            empty = trees.tries_in_nothing(repro)
            if empty.late:
                whys.append(empty.why)
            elif hollow.alike(tried.came_to, empty.came_to, trees.raw(known.path)):
                whys.append(f"it comes to the same where there is no file at all: exit {tried.came_to[1]}")
    why = f"whether its repro is green cannot be told: {whys[0]}" if whys else ""
    return rules.Again(did="unknown" if whys else "green", lines=lines, why=why)


def settle(
    trees: Trees, known: Sequence[rules.Known], found: Sequence[Finding], now: Mapping[str, rules.Again]
) -> tuple[tuple[Finding, ...], tuple[Settled, ...]]:
    """Settle the findings that a judge names no more, but for those whose repros are not green: these are kept."""
    kept, settled = [], []
    for one in rules.unnamed(known, found):
        lines = trees.place(one.path, one.quote, one.line)
        how = rules.settlement(one, lines, now.get(one.id))
        if how is None:
            kept.append(rules.kept(one, lines))
        else:
            settled.append(Settled(id=one.id, how=how))
    return tuple(kept), tuple(settled)


def reasons(found: Sequence[Finding], seen: Sequence[rules.Seen], now: Mapping[str, rules.Again]) -> list[str]:
    """Say of each finding what kept Relay from looking closer; `found` begins with those that were `seen`."""
    whys = {one.id: look.why for one, look in zip(found, seen, strict=False)}
    whys |= {one.id: now[one.id].why for one in found if one.kept and one.id in now}
    return [f"{identity}: {why}" for identity, why in whys.items() if why]
