"""What becomes of specs that are to be added: new entries, ones that stand there already, or none, after their run."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from relay.queue import promised
from relay.record.ledger import Ledger
from relay.rules import night
from relay.rules.night import Past
from relay.terms import Entry, Struct

FIELDS: Final = ("priority", "after", "not_before")
"""What a person may say of an entry; it is kept until they say otherwise."""


class Wish(Struct, frozen=True, kw_only=True):
    """What a person says of the specs that they add; None is unsaid, and an empty text takes back what was said.

    `again`: also where a run was made already.
    """

    priority: int | None = None
    after: str | None = None
    not_before: str | None = None
    again: bool = False

    def applied(self, entry: Entry) -> Entry:
        """Return an entry with what was said; what was not said is as it was."""
        said = {name: value for name in FIELDS if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(entry, **{name: None if value == "" else value for name, value in said.items()})


class Added(Struct, frozen=True, kw_only=True):
    """What became of one spec: a new entry; one that stood there as it is, with other wishes, or with another text.

    `made`: nothing was written, since `run` was made from this very text, and stands as `outcome` says.
    """

    spec: str
    how: Literal["added", "known", "changed", "renewed", "made"]
    entry: Entry | None = None
    run: str = ""
    outcome: str = ""


def decided(known: Entry | None, fresh: Entry, wish: Wish, past: Past | None) -> Added:
    """Say what becomes of a spec: `known` stands there for it, `fresh` would; `past` is the run of its very text."""
    spec, run, outcome = fresh.spec, past.run if past else "", past.outcome if past else ""
    if past is not None and not wish.again:
        return Added(spec=spec, how="made", entry=known, run=run, outcome=outcome)
    if known is None:
        return Added(spec=spec, how="added", entry=wish.applied(fresh), run=run, outcome=outcome)
    wanted = wish.applied(known)
    if known.sha256 != fresh.sha256:
        wanted = msgspec.structs.replace(wanted, sha256=fresh.sha256, added=fresh.added)
        return Added(spec=spec, how="renewed", entry=wanted, run=run, outcome=outcome)
    if past is not None:  # an entry that is younger than the run is taken
        wanted = msgspec.structs.replace(wanted, added=fresh.added)
    return Added(spec=spec, how="known" if wanted == known else "changed", entry=wanted, run=run, outcome=outcome)


def made(ledger: Ledger, entry: Entry, known: Entry | None, pasts: Sequence[Past]) -> Past | None:
    """Return the newest run that was made from the very text of an entry to be, under whatever name, and how it stands.

    One that a person stopped or refused does not count: they may want it tried anew. Neither does one that is older
    than an entry of this text: that was queued again on purpose.
    """
    since = known.added if known is not None and known.sha256 == entry.sha256 else ""
    same = (past for past in reversed(pasts) if past.sha256 == entry.sha256 and (not since or past.created > since))
    found = (promised.standing(ledger, past) for past in same)
    return next((past for past in found if past.outcome not in night.NEVER), None)


def circle(waiting: Iterable[Entry]) -> set[str]:
    """Return the specs of entries that come after themselves, over others: none of them would ever be taken."""
    after = {entry.spec: entry.after for entry in waiting}
    found = set()
    for spec in after:
        seen: set[str | None] = set()
        at: str | None = spec
        while at in after and at not in seen:
            seen.add(at)
            at = after[at]
        if at == spec:
            found.add(spec)
    return found
