"""Builders: a real repository, real agents that are small programs, and the real command line."""

import contextlib
import io
import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import tomli_w

from tests import warm

CHECKOUT = Path(__file__).resolve().parent.parent
"""Where this repository is; programs started in other folders find `relay` there, installed or not."""

SAFETY = 120
"""Seconds after which a program that hangs fails its test; no test expects to come near it."""

BROKEN = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
SPEC = """# Make add add

`add` in calc.py subtracts.

## Acceptance

- the sum is right: `grep -q 'return a + b' calc.py`
"""

_AGENT = """\
import json, os, pathlib, sys

prompt = sys.stdin.read()
ledger = pathlib.Path({ledger!r}, os.environ["RELAY_RUN"], "legs")
sealed = [json.loads(receipt.read_bytes()) for receipt in ledger.glob("*/receipt.json")]
# The receipts are counted, not the times this program ran: so a killed leg that runs again does the same again.
turn = 1 + sum(r.get("phase") == os.environ["RELAY_PHASE"] and r.get("ended_by") == "reply" for r in sealed)

def write(files):
    for name, text in files.items():
        path = pathlib.Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

def reply(**fields):
    if os.environ["RELAY_KIND"] == "judge":
        fields.setdefault("nonce", os.environ["RELAY_NONCE"])
    pathlib.Path(os.environ["RELAY_REPLY"]).write_text(json.dumps(fields), encoding="utf-8")

"""

_IMPLEMENTER = """
turns = json.loads({turns!r})
write(turns[min(turn, len(turns)) - 1])
reply(status="done", summary=f"turn {{turn}}", decisions=[{{"what": "changed the code", "why": "the spec says so"}}])
"""

_REVISER = """
found = json.loads({found!r})
if turn <= {times}:
    lines = pathlib.Path(found["path"]).read_text(encoding="utf-8").splitlines()
    found["line"] = 1 + next((n for n, line in enumerate(lines) if found["quote"] in line), 0)
    reply(verdict="revise", summary=f"turn {{turn}}", findings=[found])
else:
    reply(verdict="approve", summary="nothing left")
"""


@dataclass(frozen=True)
class Ran:
    """One call of the command line and all it said; its repr is what a failing test shows."""

    argv: tuple[str, ...]
    folder: Path
    code: int
    out: str
    err: str

    def __repr__(self) -> str:
        """Show everything, ready to be repeated by hand."""
        return (
            f"\n$ cd {self.folder}\n$ relay {shlex.join(self.argv)}\n"
            f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}\n---"
        )

    @property
    def events(self) -> list[dict[str, Any]]:
        """The JSON lines on stdout, for a call with `--json`."""
        return [json.loads(line) for line in self.out.splitlines()]


class World:
    """A folder with a repository in `root`; agents and specs live beside it, never in it."""

    def __init__(self, folder: Path, files: Mapping[str, str | bytes] | None = None) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.agents: dict[str, dict[str, Any]] = {}
        self.phases: dict[str, dict[str, Any]] = {}
        (folder / "agents").mkdir(parents=True)
        self.git("init", "-q", "-b", "main", str(self.root), folder=folder)
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")
        self.commit(files or {"README.md": "A project\n"}, "first")

    @classmethod
    def simple(cls, folder: Path, **tables: object) -> Self:
        """Build a bug in calc.py and three agents that fix, review and accept it; `tables` go into relay.toml."""
        world = cls(folder, {"README.md": "A calculator\n", "calc.py": BROKEN, ".gitignore": "*.log\n"})
        world.implementer({"calc.py": FIXED})
        world.approver("review")
        world.approver("acceptance")
        world.save(**tables)
        return world

    # --- the repository -------------------------------------------------------------------------------------------

    def git(self, *args: str, folder: Path | None = None) -> str:
        """Run git as the person would, and return what it printed, without the last newline."""
        done = subprocess.run(
            ["git", *args], cwd=folder or self.root, capture_output=True, check=False, timeout=SAFETY, text=True
        )
        assert done.returncode == 0, f"git {shlex.join(args)}: {done.stderr}"
        return done.stdout.removesuffix("\n")

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files into the checkout, and commit nothing."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, files: Mapping[str, str | bytes], message: str = "change") -> str:
        """Write files, commit them and nothing else, and return the commit's id."""
        self.write(files)
        self.git("add", "-f", "--", *files)
        self.git("commit", "-q", "--allow-empty", "-m", message, "--", *files)
        return self.git("rev-parse", "HEAD")

    def refs(self, prefix: str = "refs/") -> dict[str, str]:
        """Return the refs below a prefix with the ids they name."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)", prefix).splitlines()
        return dict(line.split(" ") for line in lines)

    def show(self, rev: str, path: str) -> str:
        """Return a file as it stands in a commit."""
        return self.git("show", f"{rev}:{path}") + "\n"

    # --- what a person writes -------------------------------------------------------------------------------------

    def spec(self, text: str = SPEC, name: str = "task.md") -> Path:
        """Write a spec outside the repository."""
        path = self.folder / "specs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def save(self, **tables: object) -> str:
        """Write and commit relay.toml, without a jail: agents here count their turns in the ledger; return the id."""
        config: dict[str, object] = {"agents": self.agents, "phase": self.phases, "jail": {"mode": "off"}} | tables
        return self.commit({"relay.toml": tomli_w.dumps(config)}, "line up the agents")

    # --- agents ---------------------------------------------------------------------------------------------------

    def agent(self, name: str, command: Sequence[str], *, phase: str, vendor: str, **more: object) -> str:
        """Enter a command as an agent, and give it a phase; return its name."""
        self.agents[name] = {"backend": "command", "command": list(command), "vendor": vendor, **more}
        self.phases.setdefault(phase, {})["agent"] = name
        return name

    def shell(self, name: str, text: str, *, phase: str, vendor: str = "mechanical", **more: object) -> str:
        """Make an agent out of lines of shell; with `reply="exit"` its exit code is its reply."""
        path = self.folder / "agents" / f"{name}.sh"
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return self.agent(name, [str(path)], phase=phase, vendor=vendor, **more)

    def python(self, name: str, text: str, *, phase: str, vendor: str, **more: object) -> str:
        """Make an agent out of lines of Python.

        They find `prompt`, `turn` (which reply of this phase in this run, from 1), `write(files)`, `reply(**fields)`.
        Called again for the same name it changes what the agent does, and relay.toml stays as it is.
        """
        path = self.folder / "agents" / f"{name}.py"
        path.write_text(_AGENT.format(ledger=str(self.runs)) + text, encoding="utf-8")
        return self.agent(name, [sys.executable, "-IS", str(path)], phase=phase, vendor=vendor, **more)

    def implementer(self, *turns: Mapping[str, str], name: str = "implementer", phase: str = "implement") -> str:
        """Make an agent that writes the files of its turn (the last ones again after that) and says it is done."""
        text = _IMPLEMENTER.format(turns=json.dumps(turns))
        return self.python(name, text, phase=phase, vendor="north")

    def approver(self, phase: str, *, criteria: Sequence[Mapping[str, object]] = ()) -> str:
        """Make a judge that approves; `criteria` are its answers to those that no command decides."""
        text = f'\nreply(verdict="approve", criteria=json.loads({json.dumps(list(criteria))!r}))\n'
        return self.python(f"{phase}-judge", text, phase=phase, vendor="south")

    def reviser(self, phase: str, *, path: str, quote: str, times: int = 1, **finding: object) -> str:
        """Make a judge that demands a revision `times` times, by a finding where the quote stands, then approves."""
        found = {"severity": "major", "title": "this is wrong", "why": "it is not what the spec says"} | finding
        text = _REVISER.format(found=json.dumps(found | {"path": path, "quote": quote}), times=times)
        return self.python(f"{phase}-judge", text, phase=phase, vendor="south")

    def script(self, name: str, *turns: Mapping[str, object], phase: str, vendor: str) -> str:
        """Make an agent that plays turns of a phase as the scripted backend reads them."""
        path = self.folder / "agents" / f"{name}.toml"
        path.write_text(tomli_w.dumps({phase: list(turns)}), encoding="utf-8")
        self.agents[name] = {"backend": "scripted", "script": str(path), "vendor": vendor}
        self.phases.setdefault(phase, {})["agent"] = name
        return name

    # --- the command line -----------------------------------------------------------------------------------------

    def relay(
        self, *argv: str | Path, folder: Path | None = None, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Ran:
        """Run the command line in a process of its own, and wait for it.

        The process is forked from one that has imported everything, unless `env` is about Python or the terminal.
        """
        where = folder or self.root
        if not any(name.startswith(("PYTHON", "LC_", "LANG")) for name in env or ()):
            given = {**os.environ, **(env or {})}
            code, said, told = warm.run([str(arg) for arg in argv], where, given, stdin.encode(), SAFETY)
            return _ran(argv, where, code, said, told)
        process = self.start(*argv, folder=folder, env=env)
        try:
            out, err = process.communicate(stdin.encode(), timeout=SAFETY)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return _ran(argv, folder or self.root, process.returncode, out, err)

    def start(
        self, *argv: str | Path, folder: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start the command line and do not wait: for a test that kills it, or runs two at once."""
        return subprocess.Popen(
            [sys.executable, "-m", "relay", *map(str, argv)],
            cwd=folder or self.root,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def inside(self, *argv: str | Path, folder: Path | None = None) -> Ran:
        """Run the command line in this process: quicker, and a test can reach into it."""
        from relay import cli

        out, err = io.BytesIO(), io.BytesIO()
        with (
            contextlib.chdir(folder or self.root),
            contextlib.redirect_stdout(io.TextIOWrapper(out, encoding="utf-8", write_through=True)),
            contextlib.redirect_stderr(io.TextIOWrapper(err, encoding="utf-8", write_through=True)),
        ):
            code = cli.main([str(arg) for arg in argv])
            return _ran(argv, folder or self.root, code, out.getvalue(), err.getvalue())

    # --- the ledger -----------------------------------------------------------------------------------------------

    @property
    def runs(self) -> Path:
        """Where the ledger keeps its runs."""
        return self.root / ".git" / "relay" / "runs"

    def only_run(self) -> str:
        """Return the id of the one run there is."""
        [run] = [path.name for path in self.runs.iterdir() if not path.name.startswith(".")]
        return run

    def legs(self, run: str | None = None) -> list[Path]:
        """Return the folders of a run's legs and acts, in the order of their numbers."""
        return sorted((self.runs / (run or self.only_run()) / "legs").glob("[0-9]*/"), key=_number)

    def text(self, leg: str, name: str = "receipt.json") -> str:
        """Return a file in the folder of a leg of the only run."""
        return (self.runs / self.only_run() / "legs" / leg / name).read_text(encoding="utf-8")

    def receipts(self, run: str | None = None) -> list[dict[str, Any]]:
        """Return the sealed receipts of a run, in the order of their numbers."""
        paths = (leg / "receipt.json" for leg in self.legs(run))
        return [json.loads(path.read_bytes()) for path in paths if path.exists()]


def _number(leg: Path) -> int:
    return int(leg.name.partition("-")[0])


def _ran(argv: Iterable[str | Path], folder: Path, code: int, out: bytes, err: bytes) -> Ran:
    return Ran(tuple(map(str, argv)), folder, code, out.decode(errors="replace"), err.decode(errors="replace"))
