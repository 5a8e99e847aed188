"""The making of a run's folder: under a temporary name, then renamed, so that it exists whole or not at all."""

import os
from collections.abc import Mapping
from pathlib import Path

from relay.errors import Exit, RelayError
from relay.host import files
from relay.record import ledger as ledgers
from relay.record import plan_file
from relay.record.ledger import Ledger
from relay.terms import Plan


def create(ledger: Ledger, plan: Plan, frozen: Mapping[str, bytes]) -> Plan:
    """Make a run's folder under a temporary name and rename it: it exists whole or not at all.

    The caller holds the repository's lock. A run id that is taken gets `-2`, `-3` and so on; the plan that was
    written is returned.
    """
    ledgers.prepare(ledger)
    parent = ledger.root / "runs"
    for abandoned in parent.glob(".new-*"):  # whoever made it was killed, for the repository's lock is ours
        files.remove_tree(abandoned)
    draft = parent / f".new-{os.urandom(6).hex()}"
    try:
        return _made(ledger, plan, frozen, draft)
    finally:
        files.remove_tree(draft)


def _made(ledger: Ledger, plan: Plan, frozen: Mapping[str, bytes], draft: Path) -> Plan:
    """Fill the draft of a run and give it the run's name, or the next one that is free."""
    for folder in (draft, draft / "legs", *((draft / name).parent for name in frozen)):
        folder.mkdir(0o700, exist_ok=True)
    for name, data in frozen.items():
        files.write(draft / name, data)
        files.sync_folder((draft / name).parent)
    wanted, count = plan.run, 1
    while True:
        files.write(draft / "plan.toml", plan_file.encode(plan))
        files.sync_folder(draft)
        try:
            draft.rename(ledger.folder(plan.run))
        except OSError as error:
            if not ledger.folder(plan.run).exists():
                raise RelayError(f"cannot make the run's folder: {error}", exit_code=Exit.HUMAN) from None
            count += 1
            plan = plan_file.renamed(plan, f"{wanted}-{count}")
        else:
            files.sync_folder(draft.parent)
            return plan
