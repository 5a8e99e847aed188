"""What a receiver finds ready: the recovery steps, run just now, and the output of checks that sent the phase back."""

from pathlib import Path

from relay import confine
from relay.host import checks, clock, drivers, files, gitenv, jail, provision, redact
from relay.record import briefing
from relay.rules import history
from relay.underway import Leg

RECOVERY_SECONDS = 60
"""How long one recovery command may take before the receiver starts without its output."""


def steps(leg: Leg) -> list[briefing.Observed]:
    """Run the recovery steps for the receiver, so that it does not start by digging.

    Their git runs no hook, filter or monitor: an earlier leg may have planted one. No secret stands in their output.
    """
    env = provision.named(leg.plan.worktree) | {"GIT_OPTIONAL_LOCKS": "0"}
    env |= gitenv.settings(drivers.find(leg.ledger.repo).off)
    commands = ["git rev-parse HEAD", "git status --short", "git log --oneline -3", *leg.plan.recovery]
    cell = confine.cell(leg.ledger, leg.plan, leg.held, jail.Access.READ)
    seen = []
    for command in commands:
        check, output = checks.run(command, leg.held.path, by="recovery", env=env, seconds=RECOVERY_SECONDS, cell=cell)
        shown = redact.own().text(output)[:4000]
        seen.append(briefing.Observed(command=command, output=shown, at=clock.stamp(), exit=check.exit))
    return seen


def outputs(leg: Leg) -> list[briefing.Observed]:
    """Return what failed when the leg before was looked at, with its output: to a worker, a reason to be here."""
    before = history.last_leg(leg.chain)
    if before is None or leg.phase.kind == "judge":
        return []
    folder = leg.ledger.leg(leg.plan.run, before.leg)
    red = [
        (f"check-{number}.log", check.by, check.command, check.exit)
        for number, check in enumerate(before.checks, 1)
        if check.exit != 0
    ]
    red += [
        (f"criterion-{result.id}.log", result.id, result.command or "", result.exit or 0)
        for result in before.criteria
        if result.by == "relay" and not result.met
    ]
    return [
        briefing.Observed(command=command, output=_kept(folder / name), at=before.ended, by=by, exit=code)
        for name, by, command, code in red
    ]


def _kept(path: Path) -> str:
    """Return the end of a log, or nothing where there is none."""
    try:
        return files.read(path).decode("utf-8", "replace")[-4000:]
    except FileNotFoundError:
        return ""
