"""All that a page says of one run: its legs, findings, criteria, diff, notes and story, each read on its own.

A part that cannot be read is left out, or says why, and the others stand all the same.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from relay import telling
from relay.errors import RelayError
from relay.record import evidence
from relay.record.ledger import Ledger
from relay.report import figures, findings, hunks, items, timeline, trace
from relay.report import leg as legs
from relay.report import run as runs
from relay.report.account import Account
from relay.report.findings import Story
from relay.report.hunks import File
from relay.report.run import Glance, Standing
from relay.report.timeline import Timeline
from relay.rules import steering
from relay.terms import Change, ClaimedFinding, JudgeReply, Receipt, Struct

FILES = 12
"""Changed files that are named for each leg."""

STORIES = 100
"""Findings that are listed, the open ones first; a page of thousands is read by nobody, and its file is 10 MB."""

JUDGES = 8
"""Legs that have a column beside the findings: the newest."""

FAILED = frozenset({"failed", "unconfirmed", "withdrawn", "interrupted"})
"""Results of an act that came to nothing."""

T = TypeVar("T")


class Row(Struct, frozen=True, kw_only=True):
    """One leg or act in the table; `problems` are Relay's words, which may quote a program's.

    `tone` is `good`, `bad`, or `plain` for what a person did, which is neither. `url` is where a proposal stands:
    a forge's word, so it is text to copy, and no link.
    """

    leg: str
    colour: int
    act: bool
    judge: bool
    who: str
    result: str
    tone: str
    files: tuple[Change, ...]
    more: int
    counts: str
    money: str
    time: str
    problems: tuple[str, ...]
    url: str = ""


class Told(Struct, frozen=True, kw_only=True):
    """A finding over the rounds: a cell for each leg that gave a verdict, and the judge's own words at last."""

    story: Story
    cells: tuple[str, ...]
    quote: str = ""
    why: str = ""


class Note(Struct, frozen=True, kw_only=True):
    """The note of a leg, and a warning where it is not the one that was sealed."""

    leg: str
    text: str
    warning: str = ""


class Sheet(Struct, frozen=True, kw_only=True):
    """Everything about one run; `account.glance` is there, since a run that cannot be read has no sheet.

    `unlisted` are findings, `earlier` are judges' legs that the table leaves out.
    """

    account: Account
    glance: Glance
    branch: str
    timeline: Timeline | None
    rows: tuple[Row, ...]
    judges: tuple[str, ...]
    findings: tuple[Told, ...]
    unlisted: int
    earlier: int
    worth: tuple[str, ...]
    criteria: tuple[tuple[Standing, str], ...]
    steers: tuple[str, ...]
    diff: tuple[File, ...]
    undrawn: str
    notes: tuple[Note, ...]
    trace: tuple[str, ...]


def of(ledger: Ledger, one: Account) -> Sheet | None:
    """Read the sheet of a run; None where its account says that it cannot be read."""
    glance = one.glance
    if glance is None:
        return None
    chain, run = glance.chain, one.run
    stories: list[Story] = _read(lambda: findings.stories(ledger, run), [])
    listed = _listed(stories)
    judges = sorted({look.leg for story in listed for look in story.looks}, key=lambda leg: int(leg.split("-")[0]))
    shown = judges[-JUDGES:]
    claims = _claims(ledger, chain)
    diff, undrawn = _diff(ledger, run)
    return Sheet(
        account=one,
        glance=glance,
        branch=glance.plan.base_ref.removeprefix("refs/heads/") or "a detached HEAD",
        timeline=timeline.draw(glance.plan, chain),
        rows=tuple(map(_row, chain)),
        judges=tuple(shown),
        findings=tuple(_told(story, shown, claims.get(story.id)) for story in listed),
        unlisted=len(stories) - len(listed),
        earlier=len(judges) - len(shown),
        worth=tuple(_worth(chain) + findings.objections(stories)),
        criteria=tuple((standing, legs.shown(standing.result)) for standing in glance.criteria),
        steers=tuple(steering.lines(glance.steers)),
        diff=diff,
        undrawn=undrawn,
        notes=tuple(_notes(ledger, chain)),
        trace=tuple(_read(lambda: trace.tell(ledger, run), [])),
    )


def _read(read: Callable[[], T], otherwise: T) -> T:
    """Return what is read, or something else where it cannot be."""
    with suppress(RelayError, OSError):
        return read()
    return otherwise


def _listed(stories: list[Story]) -> list[Story]:
    """Choose the findings that the table has room for, the open ones before the newest, and keep their order."""
    places = sorted(range(len(stories)), key=lambda at: (not stories[at].stands.startswith("open"), -at))
    return [stories[at] for at in sorted(places[:STORIES])]


def _row(sealed: Receipt) -> Row:
    """Make the line of a leg or an act."""
    act = sealed.kind == "act"
    result = telling.result_of(sealed)
    blocking = sum(finding.blocks for finding in sealed.findings)
    counts = [runs.count(len(sealed.findings), "finding") + f", {blocking} block"] if sealed.findings else []
    counts += [f"{sealed.score} criteria"] if sealed.score else []
    who = [sealed.by] if act else [sealed.agent or "", sealed.model or ""]
    return Row(
        leg=sealed.leg,
        colour=0 if act else timeline.colour(sealed.phase or ""),
        act=act,
        judge=sealed.kind == "judge",
        who=", ".join(filter(None, who)),
        result=result,
        tone="good" if result in telling.GOOD else "plain" if act and result not in FAILED else "bad",
        files=sealed.changed[:FILES],
        more=len(sealed.changed[FILES:]),
        counts=", ".join(counts),
        money="" if act or sealed.cost_microusd == 0 else figures.spent([sealed]).price,
        time="" if act else figures.span(sealed.seconds),
        problems=tuple(telling.problems(sealed)),
        url=(sealed.effect or {}).get("url", ""),
    )


def _claims(ledger: Ledger, chain: tuple[Receipt, ...]) -> dict[str, ClaimedFinding]:
    """Return what each finding's judge said of it at last, by its id."""
    said: dict[str, ClaimedFinding] = {}
    for sealed in chain:
        if sealed.kind == "judge" and sealed.findings:
            answer = _read(lambda sealed=sealed: evidence.reply_of(ledger, sealed), None)  # type: ignore[misc]
            if isinstance(answer, JudgeReply):
                named = [one for one in sealed.findings if not one.kept]
                said |= {one.id: claim for one, claim in zip(named, answer.findings, strict=False)}
    return said


def _told(story: Story, judges: list[str], claim: ClaimedFinding | None) -> Told:
    cells = {look.leg: look.told for look in story.looks}
    return Told(
        story=story,
        cells=tuple(cells.get(leg, "") for leg in judges),
        quote=claim.quote if claim is not None else "",
        why=claim.why if claim is not None else "",
    )


def _worth(chain: tuple[Receipt, ...]) -> list[str]:
    """Say what each judge's evidence was worth."""
    return [
        f"{one.agent}: {runs.count(one.named, 'finding')}, {one.confirmed} confirmed, {one.located} located,"
        f" {one.unfounded} unfounded"
        for one in findings.tallies(chain)
    ]


def _diff(ledger: Ledger, run: str) -> tuple[tuple[File, ...], str]:
    """Return the run's change from its base to its head, or why it cannot be shown."""
    try:
        return hunks.read(items.diff(ledger, run, None)), ""
    except RelayError as error:
        return (), error.message


def _notes(ledger: Ledger, chain: tuple[Receipt, ...]) -> list[Note]:
    """Read the notes of all legs, in order; one that is lost says so."""
    found = []
    for sealed in chain:
        if sealed.note_sha256 is not None:
            try:
                item = items.read(ledger, sealed.run, sealed.leg, "note")
            except (RelayError, OSError) as error:
                wrong = error.message if isinstance(error, RelayError) else str(error)
                found.append(Note(leg=sealed.leg, text="", warning=wrong))
            else:
                text = item.data.decode("utf-8", "replace")
                found.append(Note(leg=sealed.leg, text=text, warning=item.warning))
    return found
