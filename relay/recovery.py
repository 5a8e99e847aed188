"""What a receiver finds ready: the recovery steps, run just now, and the output of checks that sent the phase back."""

from relay import confine
from relay.host import checks, clock, drivers, files, gitenv, jail
from relay.record import briefing
from relay.rules import history
from relay.settle import Leg

RECOVERY_SECONDS = 60
"""How long one recovery command may take before the receiver starts without its output."""


def steps(leg: Leg) -> list[briefing.Observed]:
    """Run the recovery steps for the receiver, so that it does not start by digging.

    Their git runs no hook, filter or monitor: an earlier leg may have planted one.
    """
    env = {"GIT_OPTIONAL_LOCKS": "0", **gitenv.settings(drivers.find(leg.ledger.repo).off)}
    commands = ["git rev-parse HEAD", "git status --short", "git log --oneline -3", *leg.plan.recovery]
    cell = confine.cell(leg.ledger, leg.plan, leg.held, jail.Access.READ)
    seen = []
    for command in commands:
        check, output = checks.run(command, leg.held.path, by="recovery", env=env, seconds=RECOVERY_SECONDS, cell=cell)
        seen.append(briefing.Observed(command=command, output=output[:4000], at=clock.stamp(), exit=check.exit))
    return seen


def outputs(leg: Leg) -> list[briefing.Observed]:
    """Return the output of the checks that sent the phase back, as the earlier leg's folder keeps it."""
    before = history.last_leg(leg.chain)
    if before is None or before.phase != leg.go.phase:
        return []
    folder = leg.ledger.leg(leg.plan.run, before.leg)
    shown = []
    for index, check in enumerate(before.checks):
        path = folder / f"check-{index + 1}.log"
        output = files.read(path).decode("utf-8", "replace") if path.exists() else ""
        shown.append(
            briefing.Observed(
                command=check.command, output=output[-4000:], at=before.ended, by=check.by, exit=check.exit
            )
        )
    return shown
