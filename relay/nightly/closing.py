"""The end of a night: what it came to in a line each, the page, and the one notice."""

from collections.abc import Sequence

from relay import nights, notify
from relay.host import clock, files, term
from relay.nightly import watch
from relay.record.ledger import Ledger
from relay.report import account, figures, morning
from relay.report import lines as told
from relay.report import run as report
from relay.terms import Item, Night, Receipt, Struct


class Line(Struct, frozen=True, kw_only=True):
    """What a night came to for one run, or for a spec that it did not run.

    `question` is what an agent asks, `next` what to type, if anything.
    """

    item: Item
    stands: str
    cost: str
    into: str = ""
    question: str = ""
    next: str = ""

    @property
    def name(self) -> str:
        """Name the run, or the spec where there is none."""
        return self.item.run or self.item.spec or ""

    @property
    def text(self) -> str:
        """Say it in one line, and below it what is asked and what to type."""
        parts = [
            self.stands + f" into {self.into}" * bool(self.into),
            self.name,
            self.cost * (self.item.did != "skipped"),
            figures.local(self.item.reason),
        ]
        asks = " ".join(self.question.split())[: told.LONG]
        return "\n    ".join(filter(None, ("  ".join(filter(None, parts)), asks, self.next)))


def lines(ledger: Ledger, night: Night, at: str = "") -> list[Line]:
    """Tell a night, a line for each thing that it did or passed over; `at` stands behind `relay` in commands."""
    return [_line(ledger, night, item, at) for item in night.items]


def _line(ledger: Ledger, night: Night, item: Item, at: str) -> Line:
    if item.run is None:
        return Line(item=item, stands="skipped", cost="")
    one = account.of(ledger, item.run, at)
    chain = one.glance.chain if one.glance is not None else ()
    command = None if one.stands in {"shipped", "not-accepted"} else told.first(one)
    return Line(
        item=item,
        stands=f"skipped, {one.told}" if item.did == "skipped" else one.told,
        cost=_cost(night, item, chain) if one.glance is not None else "",
        into=morning.into(chain) if one.stands == "shipped" else "",
        question=one.question,
        next=command.text if command is not None else "",
    )


def _cost(night: Night, item: Item, chain: Sequence[Receipt]) -> str:
    """Write what a run cost tonight; where a part of it is not known, it is at least that."""
    legs = (leg for leg in chain if leg.kind != "act" and leg.started >= night.started)
    unknown = any(leg.cost_microusd is None for leg in legs)
    if unknown and not item.microusd:
        return report.dollars(None)
    return "at least " * unknown + report.dollars(item.microusd)


def headline(found: list[Line], night: Night) -> str:
    """Say in a few words what came of a night."""
    ran = [line.stands for line in found if line.item.did != "skipped"]
    counts = ", ".join(f"{ran.count(stands)} {stands}" for stands in sorted(set(ran), key=ran.index))
    said = f"{report.count(len(ran), 'run')}: {counts}" if ran else "nothing ran"
    skipped = len(found) - len(ran)
    why = "" if night.ended_by == "done" else f"; it ended by {night.ended_by}"
    return said + f"; {skipped} not run" * bool(skipped) + why


def tell(ledger: Ledger, night: Night) -> bool:
    """Write the page and send the one notice; neither can fail a night. Say whether nobody need be told any more."""
    try:
        from relay.report import page  # its templates are wanted once a night

        path = nights.page(ledger, night.id)
        files.write(path, page.night(ledger, night).encode("utf-8", "replace"))
        term.say(f"the page of the night is `{path}`")
    except Exception as error:  # noqa: BLE001 - as above
        watch.said(error)
    return quiet(night, nights.before(ledger, night)) or _notice(ledger, night) != "failed"


def quiet(night: Night, before: Night | None) -> bool:
    """Tell whether nobody need hear of a night: a scheduled one that found nothing to do, nor anything new to raise.

    What time alone will settle, an entry whose hour has not come or a quota, is nothing to hear of either, nor is what
    was passed over the night before for the same reason.
    """
    known = {(item.run, item.spec, item.reason) for item in before.items} if before is not None else set()
    nothing = all(
        item.did == "skipped" and (item.outcome == "waiting" or (item.run, item.spec, item.reason) in known)
        for item in night.items
    )
    return night.scheduled and night.ended_by == "done" and nothing and not night.alerts and not night.reason


def unwritten(ledger: Ledger, why: str) -> None:
    """Tell a person of a night of which nothing could be written down; it cannot fail either."""
    at = morning.elsewhere(ledger)
    key = f"night.unwritten.{clock.stamp()}"
    notice = notify.Notice(
        event="night", key=key, title="nothing ran", text=why, cost="$0.00", next=f"relay {at}doctor"
    )
    notify.send(ledger, notice)


def _notice(ledger: Ledger, night: Night) -> notify.Sent:
    at = morning.elsewhere(ledger)
    found = lines(ledger, night, at)
    raised = report.count(len(night.alerts), "thing")
    notice = notify.Notice(
        event="night",
        key=f"night.{night.id}",
        title=headline(found, night),
        text="\n".join(
            [figures.local(night.reason)] * bool(night.reason)
            + [line.text for line in found]
            + told.before(morning.waiting(ledger, night, at), {}, at)
            + [f"the reaper raised {raised}"] * bool(night.alerts)
        ),
        cost=report.dollars(sum(item.microusd for item in night.items)),
        next=f"relay {at}report --night",
    )
    return notify.send(ledger, notice)
