"""The base of a night: which ref it is, is settled when the night begins; nothing of the checkout counts after that.

What a person does in their checkout meanwhile, another branch or a relay.toml that is not committed, is for the next.
"""

from pathlib import PurePath

import msgspec

from relay.record import config, freeze
from relay.record.config import Config
from relay.record.freeze import Frozen
from relay.record.ledger import Ledger
from relay.terms import Spec


class Base:
    """The ref that the specs of a night start from, with its config and commit as they were when last looked at.

    A head that is detached is on no branch: then the commit itself is the base, and runs are of none, as by day.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.settings, ref, self.commit = config.load(ledger.repo)
        self.ref, self._detached = ref or self.commit, not ref
        self._repo = msgspec.structs.replace(ledger.repo, top=None)

    def look(self) -> tuple[Config, str]:
        """Read config and commit anew, since runs ship into the base; `RelayError` leaves what was read before."""
        self.settings, _, self.commit = config.load(self._repo, self.ref)
        return self.settings, self.commit

    def freeze(self, task: Spec, source: str, entry: str | None) -> Frozen:
        """Freeze a run of a spec; what the spec itself says of its base goes first."""
        name, base = PurePath(source).name, task.base or self.ref
        frozen = freeze.freeze(self._repo, task, name, base=base, source=source, queued=entry)
        if not self._detached or task.base is not None:
            return frozen
        return msgspec.structs.replace(frozen, plan=msgspec.structs.replace(frozen.plan, base_ref=""))
