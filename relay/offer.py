"""A leg that a person takes: offered first, and taken when the reply is there."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from relay import acts, examination, loss, ready
from relay.errors import Exit, RelayError
from relay.host import clock, files, lock
from relay.record import briefing, receipt, reply
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.rules import history
from relay.rules import plan as rules
from relay.terms import Plan, Receipt, Start
from relay.underway import Leg


def make(ledger: Ledger, plan: Plan, chain: Sequence[Receipt], go: rules.Go) -> Receipt:
    """Offer a leg to a person: a worktree, a prompt, and the path where the reply is awaited."""
    with lock.hold(ledger.run_lock(plan.run), "an offer", plan.run, wait=10):
        if ledgers.receipts(ledger, plan.run) != tuple(chain):
            raise ready.Overtaken
        leg_id = ledgers.next_leg_id(ledger, plan.run, "offer")
        start = msgspec.structs.replace(
            ready.intent(ledger, plan, go, act="offer"), leg=leg_id, worktree=str(ledger.worktree(plan.run, leg_id))
        )
        ledgers.begin(ledger, start)
        leg = Leg(ledger=ledger, plan=plan, chain=tuple(chain), go=go, start=start, began=clock.monotonic())
        leg, problem = ready.lease(leg)
        if problem:
            log = ledger.leg(plan.run, leg_id) / "setup.log"
            raise RelayError(
                f"the worktree for the offer could not be set up: {problem}",
                hint=f"look at `{log}`, then relay resume {plan.run}",
                exit_code=Exit.HUMAN,
            )
        leg = ready.ready(leg)
        schema = reply.schema(plan.phase(go.phase).kind)
        files.write(ready.io(start) / "reply.schema.json", msgspec.json.format(msgspec.json.encode(schema)))
        effect = {
            "phase": go.phase,
            "worktree": start.worktree or "",
            "prompt": str(ledger.leg(plan.run, leg_id) / "prompt.md"),
            "reply": str(ready.io(start) / "reply.json"),
        }
        loss.beat.end(leg.held.git_dir)
        return acts.seal(ledger, plan, chain, "offer", leg=leg_id, effect=effect, round_=go.round, by="relay")


def taken_up(leg: Leg, offer: str) -> Leg:
    """Give the leg that a person took the prompt of its offer, and to a judge's leg what Relay sees of the criteria."""
    ledger, run = leg.ledger, leg.plan.run
    files.write(ledger.leg(run, leg.start.leg) / "prompt.md", files.read(ledger.leg(run, offer) / "prompt.md"))
    leg = examination.before(leg) if examination.judges_criteria(leg.plan, leg.phase) else leg
    made = briefing.make(
        ledger,
        leg.plan,
        leg.chain,
        leg.go,
        ask=ready.ask(leg),
        recovery=(),
        checked=leg.observed,
        criteria=leg.criteria,
        tests=leg.tests.shown if leg.tests else None,
    )
    return msgspec.structs.replace(leg, brief=made)


def begun(ledger: Ledger, run: str, offer: str | None) -> Start | None:
    """Read the start of an offer that is being taken."""
    if offer is None:
        return None
    path = ledger.leg(run, offer) / "start.json"
    return receipt.decode(files.read(path), Start, str(path))


def unfit(ledger: Ledger, plan: Plan, chain: Sequence[Receipt]) -> str:
    """Say what is wrong with the reply that a person wrote, so that it can be mended before it is taken."""
    offer = history.offer(chain)
    start = begun(ledger, plan.run, offer.leg) if offer is not None else None
    if offer is None or start is None:
        return ""
    effect = offer.effect or {}
    try:
        raw = files.handed(Path(effect["reply"]))
    except (OSError, RelayError) as error:
        return error.message if isinstance(error, RelayError) else str(error.strerror)
    return reply.decode(raw, plan.phase(effect["phase"]).kind, start.nonce)[1]


def awaited(chain: Sequence[Receipt]) -> bool:
    """Tell whether the reply that the newest offer waits for has been written."""
    offer = history.offer(chain)
    return offer is not None and Path((offer.effect or {}).get("reply", "")).is_file()
