"""A world whose run is accepted, its remote, and the forge."""

from pathlib import Path

from tests.forge.away import lined_up
from tests.forge.hub import Hub
from tests.loop.faults import through

SPEC = """# Make add add

People pay too little. Ask @ada about it.

## Acceptance

- the sum is right: `grep -q 'return a + b' calc.py`
"""


class Desk:
    """A world whose run is accepted, its remote, and the forge."""

    def __init__(self, folder: Path, **ship: object) -> None:
        self.world, self.away = lined_up(folder, method="pr")
        self.hub = Hub(self.away)
        self.world.save(phases=["implement"], ship={"method": "pr", "api": self.hub.url, **ship})
        self.world.git("push", "-q", "origin", "main")

    def accepted(self) -> "Desk":
        """Run until accepted."""
        through(self.world.inside("run", self.world.spec(SPEC)))
        return self

    @property
    def branch(self) -> str:
        return f"relay/{self.world.only_run()}"

    @property
    def effects(self) -> list[str]:
        return [receipt["effect"]["outcome"] for receipt in self.world.receipts() if receipt["act"] == "ship"]
