"""What an agent does while it does it: one calm line on a terminal, all of it with `-v`, events with `--json`."""

import msgspec

from relay.host import clock, term
from relay.terms import Told

_ARGUMENTS = ("command", "path", "pattern", "file_path", "status", "verdict")
"""Arguments of a call that say in a word what it is about, in the order in which they are looked for."""


class Live:
    """Listens to one leg. The line says phase, agent, turn, the last action, tokens, cost and time."""

    def __init__(self, run: str, phase: str, agent: str) -> None:
        self._run, self._name, self._began = run, f"{phase}  {agent}", clock.monotonic()
        self._turn, self._tokens, self._cost, self._action = 0, 0, "", ""
        self._show()

    def told(self, told: Told) -> None:
        """Show one thing that happened."""
        term.event("told", run=self._run, what=told.type, **_fields(told))
        self._turn = max(self._turn, told.turn)
        if told.usage is not None:
            self._tokens = told.usage.input + told.usage.output
            self._cost = "" if told.cost_microusd is None else f"${told.cost_microusd / 1_000_000:.2f}"
        match told.type:
            case "text" | "thought" | "result" | "line":
                term.detail(told.text)
            case "call":
                self._action = f"{told.tool} {about(told.text)}".rstrip()
                term.detail(term.style(f"{told.tool} {told.text}", "cyan"))
            case "wait":
                self._action = f"waiting {about(told.text)}"
                term.detail(term.style(self._action, "yellow"))
            case "usage":
                pass
        self._show()

    def heard(self, piece: bytes) -> None:
        """Show what a program wrote: the last line of it."""
        text = piece.decode("utf-8", "replace")
        term.detail(text.removesuffix("\n"))
        if lines := [line for line in text.splitlines() if line.strip()]:
            self._action = " ".join(lines[-1].split())
        self._show()

    def over(self) -> None:
        """Take the line away: what became of the leg is said in its place."""
        term.live("")

    def _show(self) -> None:
        seconds = int(clock.monotonic() - self._began)
        parts = [
            f"  {self._name}",
            f"turn {self._turn}" if self._turn else "",
            f"{self._tokens / 1000:.0f}k tokens" if self._tokens else "",
            self._cost,
            f"{seconds // 60}:{seconds % 60:02}",
            self._action,
        ]
        term.live("  ".join(filter(None, parts)))


def about(arguments: str) -> str:
    """Say in one line what a call is about: its command or path, else the beginning of its arguments."""
    try:
        given = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        given = None
    if isinstance(given, dict):
        named = (given[name] for name in _ARGUMENTS if isinstance(given.get(name), str))
        arguments = next(named, arguments)
    return " ".join(arguments.split())[:200]


def _fields(told: Told) -> dict[str, object]:
    return {name: value for name, value in msgspec.to_builtins(told).items() if name != "type"}
