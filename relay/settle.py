"""From how an agent ended to a sealed receipt: the boundary, the commit, the checks, the verdict, the note."""

import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from relay import __version__, confine, examination, loss, watch
from relay.errors import RelayError
from relay.host import clock, files, git, inventory, lock, proc, scan, snapshot, worktree
from relay.record import reply, sealing
from relay.rules import boundary, independence
from relay.terms import (
    Check,
    EndedBy,
    JudgeReply,
    Receipt,
    Refused,
    Reply,
    Struct,
    Taken,
    WorkReply,
)
from relay.underway import Leg


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of the tree: the commit that stands, where it is kept, and what was not carried."""

    head: str
    refs: dict[str, str]
    refused: tuple[Refused, ...] = ()


def seal(leg: Leg, taken: Taken) -> Receipt:
    """Turn the end of an agent into a sealed receipt; then the worktree goes, unless something in it is unique."""
    answer, problem = _answer(leg, taken)
    ended_by = taken.ended_by
    if ended_by in {"reply", "handover"} and answer is None:
        ended_by = "no-reply"
    why, kinship = independence.look(leg.plan, leg.chain, leg.phase, taken.model)
    if kinship and answer is not None:  # nothing that it says counts, and asking it again would change nothing
        ended_by, answer, problem = "setup", None, f"the judge is not independent: {kinship}"
    crossed = _crossed(leg)
    if crossed.breaches:
        ended_by, answer = "breach", None
        problem = watch.restore(leg.ledger, leg.plan, leg.start, leg.promised)
    done, unseen = _kept(leg, ended_by), _unseen(leg)
    if done.refs and not (done.refused or unseen):
        loss.carry(leg.held.git_dir)
    receipt = _draft(leg, taken, ended_by, problem or taken.problem, crossed, done)
    receipt = msgspec.structs.replace(receipt, independence=why)
    logs: dict[str, bytes] = {}
    if ended_by == "reply" and answer is not None:
        ran = proc.ran()
        receipt, logs = (
            examination.judged(leg, receipt, answer)
            if isinstance(answer, JudgeReply)
            else examination.worked(leg, receipt, answer)
        )
        late = _crossed(leg, done.refs) if proc.ran() != ran else crossed  # what Relay ran was the agent's code, too
        if late.breaches:
            restored = watch.restore(leg.ledger, leg.plan, leg.start, leg.promised)
            receipt, answer = watch.voided(leg.ledger.repo, receipt, late, restored), None
    elif leg.phase.kind == "judge":
        receipt = msgspec.structs.replace(receipt, verdict="inconclusive")
    raw = leg.redactor.document(taken.reply) if taken.reply is not None else None
    if raw != taken.reply and raw is not None and answer is not None:  # the note is made from what is kept
        answer = reply.decode(raw, leg.phase.kind, None)[0]
    sealed = _write(leg, receipt, answer, raw, {name: leg.redactor.bytes(log) for name, log in logs.items()})
    _release(leg, sealed, unseen)
    return sealed


def _answer(leg: Leg, taken: Taken) -> tuple[Reply | None, str]:
    """Read the reply, if the agent ended by giving one."""
    if taken.ended_by not in {"reply", "handover"}:
        return None, ""
    return reply.decode(taken.reply, leg.phase.kind, leg.start.nonce)


def _crossed(leg: Leg, made: Collection[str] = ()) -> boundary.Crossed:
    """Compare the fingerprints from before and now; a leg whose agent never started crossed nothing.

    `made` are the refs that Relay itself made since; a checkout that it made for the leg, and that could not go, is
    nobody's breach either.
    """
    if not leg.start.fingerprint:
        return boundary.Crossed()
    after = watch.take(leg.ledger, leg.plan, leg.held, tree=leg.phase.boundary == "verify-only")
    jail = "hand" if leg.go.offer else confine.rung(leg.plan)[0].name
    start, at = leg.start, leg.ledger.worktree(leg.start.run, leg.start.leg)
    own = (one for one in worktree.own(leg.ledger.repo) if "for" in one.said and one.path.parent == at.parent)
    mine = (one.git_dir.name for one in own if (one.said["run"], one.said["leg"]) == (start.run, start.leg))
    beside = tuple(f"worktrees/{name}/" for name in mine)
    before, after = (
        {name: value for name, value in seen.items() if name not in made and not name.startswith(beside)}
        for seen in (start.fingerprint, after)
    )
    if leg.go.offer:  # Relay sealed the offer, and what people did until it was taken
        after = {name: after[name] for name in after if name in before or not name.startswith("ledger/")}
    return boundary.compare(before, after, boundary=leg.phase.boundary, jail=jail)


def _kept(leg: Leg, ended_by: EndedBy) -> Outcome:
    """Put what stands in the worktree into a commit and a ref, before anything else can be lost.

    Only a leg whose agent started has something to keep. A judge leaves a commit only where it breached.
    """
    start = leg.start
    if not start.pointer_sha256 or (leg.phase.boundary == "verify-only" and ended_by != "breach"):
        return Outcome(head=start.start, refs={})
    repo, name = leg.ledger.repo, f"refs/relay/{start.run}/{start.leg}"
    if not leg.held.path.is_dir():  # it was taken away, which is a breach of its own
        return Outcome(head=start.start, refs={})
    message = f"relay: {start.leg} of {start.run}\n\nRelay-Run: {start.run}\nRelay-Leg: {start.leg}\n"
    taken = snapshot.take(
        repo, leg.held, start.start, message, start.baseline, git.identity(repo), confine.rung(leg.plan)[0]
    )
    suffix = {"reply": "", "handover": "", "breach": ".void"}.get(ended_by, ".cut")
    refs = {f"{name}{suffix}": taken.commit}
    git.put_ref(repo, f"{name}{suffix}", taken.commit)
    refs |= loss.put_aside(repo, leg.held.git_dir, name, start.start)
    return Outcome(head=taken.commit, refs=refs, refused=taken.refused)


def _draft(
    leg: Leg, taken: Taken, ended_by: EndedBy, problem: str | None, crossed: boundary.Crossed, done: Outcome
) -> Receipt:
    """Fill in what every leg's receipt says."""
    repo, start, agent = leg.ledger.repo, leg.start, leg.plan.agent(leg.phase.agent)
    refused = (Check(by="relay", command="every path can be carried", exit=1, seconds=0.0, output_sha256=""),)
    return Receipt(
        schema=1,
        run=start.run,
        leg=start.leg,
        kind=start.kind,
        prev="",
        relay_version=__version__,
        started=start.started,
        ended=clock.stamp(),
        seconds=round(max(0.0, clock.monotonic() - leg.began), 3),
        round=start.round,
        start=start.start,
        base=start.base,
        head=done.head,
        tree=git.tree(repo, done.head),
        start_tree=git.tree(repo, start.start),
        phase=start.phase,
        by=f"agent {agent.name}",
        agent=agent.name,
        backend=agent.backend,
        vendor=agent.vendor,
        model=taken.model or agent.model,
        version=taken.version,
        session=taken.session,
        jail=confine.rung(leg.plan)[0].name,
        reach=taken.reach or confine.reach(leg.plan),
        settings=taken.settings,
        changed=git.numstat(repo, start.start, done.head) if done.head != start.start else (),
        refused=done.refused,
        checks=refused if done.refused else (),
        breaches=crossed.breaches,
        drift=crossed.drift,
        crossed=leg.brief.crossed if leg.brief else (),
        withheld=leg.brief.withheld if leg.brief else (),
        notes_read=leg.go.reads,
        reviewed=leg.brief.reviewed if leg.brief else 0,
        usage=taken.usage,
        cost_microusd=taken.cost_microusd,
        billing=taken.billing,
        ended_by=ended_by,
        problem=leg.redactor.text(problem) if problem else None,
        until=taken.until,
    )


def _write(leg: Leg, receipt: Receipt, answer: Reply | None, raw: bytes | None, logs: Mapping[str, bytes]) -> Receipt:
    """Write everything the receipt names by hash, then the receipt, under the run's lock.

    What Relay looked at after the agent is a part of the leg, and counts in its time and so in the budget's.
    """
    ledger, plan = leg.ledger, leg.plan
    folder = ledger.leg(plan.run, receipt.leg)
    beside: dict[str, bytes] = dict(logs)
    if raw is not None:
        beside["reply.json"] = raw
    if isinstance(answer, WorkReply) and receipt.document:
        beside["document.md"] = (answer.document or "").encode()
    prompt = folder / "prompt.md"
    receipt = msgspec.structs.replace(
        receipt,
        ended=clock.stamp(),
        seconds=round(max(0.0, clock.monotonic() - leg.began), 3),
        reply_sha256=files.sha256(raw) if raw is not None else None,
        document_sha256=files.sha256(beside["document.md"]) if "document.md" in beside else None,
        prompt_sha256=files.sha256(files.read(prompt)) if prompt.exists() else None,
    )
    with lock.hold(ledger.run_lock(plan.run), "an append", plan.run, wait=10):
        return sealing.with_note(ledger, plan, leg.chain, receipt, answer, beside)


def _unseen(leg: Leg) -> str:
    """Say what the agent left that no commit has, before Relay's own commands leave what they like."""
    if not leg.start.pointer_sha256 or not leg.held.path.is_dir() or (leg.start.kind == "judge" and not leg.go.offer):
        return ""  # a judge has no work of its own
    theirs = loss.beat.last(leg.held.git_dir) if leg.go.offer else math.inf
    return loss.unseen(leg.ledger.repo, leg.held, confine.rung(leg.plan)[0], theirs)


def _release(leg: Leg, sealed: Receipt, unseen: str) -> None:
    """Remove the worktree where everything in it is kept and nobody else uses it: never after a failure.

    Its tree became a commit before the checks ran; what they changed of that, or left beside it, is no work. What
    cannot be removed stays, since the leg is sealed: the reaper raises it.
    """
    repo, path = leg.ledger.repo, leg.held.path
    theirs = loss.beat.last(leg.held.git_dir) if leg.go.offer else math.inf
    loss.beat.end(leg.held.git_dir)
    if not done_with(sealed) or unseen or loss.gate(repo, leg.held):
        return
    with suppress(RelayError):
        worktree.release(repo, leg.held)
        put_away(path.parent / f"{path.name}.io", theirs)


def put_away(folder: Path, theirs: float) -> None:
    """Remove the folder where a reply was awaited; what a person put beside that since they were offered it stays."""
    if theirs == math.inf or scan.kind(str(folder)) != "a folder":  # what a link leads to is never looked into
        files.remove_tree(folder)
        return
    for path in folder.iterdir():
        if path.name == "reply.json" or not inventory.changed_since(str(folder), path.name, theirs):
            files.remove_tree(path)
    with suppress(OSError):
        folder.rmdir()


def done_with(sealed: Receipt) -> bool:
    """Tell whether nobody needs a leg's worktree any more: its tree is a commit, or it was a judge's and unchanged."""
    if sealed.kind == "judge":
        return sealed.ended_by != "breach"
    return sealed.ended_by in {"reply", "handover"} and not sealed.refused
