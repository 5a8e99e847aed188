"""A worktree, and the hands of an agent in it: what a call comes to, without a model."""

import json
import subprocess
from pathlib import Path
from typing import Any

from relay.backends import tools
from relay.backends.purse import Purse
from relay.backends.talk import Call
from relay.host.jail.cell import Cell
from relay.terms import Kind, Limits
from tests.backends.lanes import lane
from tests.backends.legs import agent, ask


class Desk:
    """Hands in a worktree: `desk("read", path="a.txt")` does a call and returns what came of it."""

    def __init__(self, root: Path, kind: Kind = "work") -> None:
        self.ask = ask(root, agent("http://127.0.0.1:1"), kind)
        self.root = Path(self.ask.folder)
        self.purse = Purse(Limits(seconds=60), lambda _: 0)
        self.cell: Cell | None = None

    def __call__(self, tool: str, **arguments: Any) -> tools.Done:  # noqa: ANN401 - JSON
        return self.raw(tool, json.dumps(arguments))

    def raw(self, tool: str, arguments: str) -> tools.Done:
        """Do a call with its arguments as they stand."""
        hands = tools.Hands(self.ask, lane(self.ask, cell=self.cell))
        return hands.act(Call(id="1", tool=tool, arguments=arguments), self.purse)

    def git(self, *words: str) -> None:
        """Run git in the worktree."""
        subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True)
