"""relay demo: a small real project, one subtle bug, two vendors and no model, in a folder of its own."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import Final

import click

import relay
from relay.commands import options, show
from relay.errors import Exit, RelayError
from relay.host import proc, repository, term
from relay.record import ledger
from relay.report import findings
from relay.report import leg as legs
from relay.report import run as glances
from relay.terms import Limits, Proof, Receipt

SPEC: Final = "tasks/several-parts.md"
AGENTS: Final = ("atlas.toml", "borealis.toml")
NEEDED: Final = {"git": "Relay keeps the work in it", "python3": "the demo's project is written in it"}
IDENTITY: Final = {"user.name": "relay demo", "user.email": "demo@localhost", "commit.gpgSign": "false"}
PROOF: Final[dict[Proof, str]] = {
    "confirmed": "Relay ran the reviewer's test and saw it fail as said",
    "located": "the quoted line stands there",
    "unfounded": "the quoted line is not there; kept as advice",
}
FLAGS: Final = {"quiet": "-q", "verbose": "-v", "as_json": "--json"}
QUICK: Final = Limits(seconds=60)
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option(
    "--folder", "--keep", "folder_", metavar="DIR", help="Make it in DIR, new or empty; else in a temporary one."
)
@options.everywhere
def command(folder_: str | None) -> int:
    """See a whole relay: a bug, a fix that is subtly wrong, the review that shows it, a better fix, shipped.

    Two scripts play the agents of two vendors. No model is called.
    """
    kept = click.get_current_context().meta.get(options.KEPT, {})
    flags = [flag for name, flag in FLAGS.items() if kept.get(name)]
    return run(options.folder() / folder_ if folder_ else None, flags)


def run(folder: Path | None = None, flags: Sequence[str] = ()) -> int:
    """Make the project in `folder` (default: a fresh temporary one), relay its spec, approve, and show what is there.

    `flags` go to every call of the command line. Returns the exit code of the call that failed, or 0. A folder with
    anything in it is a `RelayError`.
    """
    _check()
    place = _place(folder)
    project = place / "project"
    term.say(term.style("relay demo: one subtle bug, two vendors, no model", "bold"))
    term.say(
        "No model is called and nothing leaves this machine. Two scripts play the agents `atlas` and `borealis`;\n"
        "git, the commands, the checks, the commits and the receipts are real."
    )
    _make(place, project)
    term.say(f"\nA project with a bug, its relay.toml and this spec are in {project}")
    term.say(f"\n{_indented(_text('project.toml')[SPEC])}")
    code = _relay(place, project, *flags, "run", SPEC)
    runs = ledger.runs(ledger.at(repository.discover(project)))
    if code == Exit.OK and runs:
        _explain(project, runs[-1])
        code = _relay(place, project, *flags, "approve", runs[-1])
    if code != Exit.OK or not runs:
        term.say(f"\nThe demo ends here, since that exited {code}; all of it is kept in {place}")
        if runs:
            term.hint(f"{_start(project)} resume")
        return code or Exit.BUG
    term.event("demo", run=runs[-1], folder=str(place), project=str(project))
    if "--json" not in flags:
        _show(project, runs[-1])
        _next(place, project, runs[-1])
    return Exit.OK


def _check() -> None:
    """Refuse to start where something would be missing half-way."""
    path = proc.clean_env().get("PATH")
    for name, why in NEEDED.items():
        if shutil.which(name, path=path) is None:
            raise RelayError(f"`{name}` is not on PATH: {why}", hint=f"install `{name}`, then: relay demo")


def _place(folder: Path | None) -> Path:
    """Return the folder of the demo, which is new or empty."""
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="relay-demo-")).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = not any(folder.iterdir())
    except OSError as error:
        raise RelayError(f"cannot use the folder `{folder}`: {error.strerror}", hint="name another one") from error
    if not empty:
        raise RelayError(f"the folder `{folder}` is not empty", hint="name one that is new or empty")
    return folder.resolve()


def _text(name: str) -> dict[str, str]:
    """Read a file of the demo's data as TOML."""
    return tomllib.loads(_data(name))


def _data(name: str) -> str:
    return resources.files(relay).joinpath("demo", name).read_text(encoding="utf-8")


def _make(place: Path, project: Path) -> None:
    """Write the scripts and the project, and commit the project."""
    scripts = {name: str(place / "agents" / name) for name in AGENTS}
    for name, path in scripts.items():
        _write(Path(path), _data(name))
    for name, text in _text("project.toml").items():
        _write(project / name, _lead(text, scripts) if name == "relay.toml" else text)
    _git(project, "init", "-q", "--template=", "-b", "main")
    for key, value in IDENTITY.items():
        _git(project, "config", key, value)
    _git(project, "add", "--all")
    _git(project, "commit", "-q", "-m", "An egg timer")


def _lead(config: str, scripts: Mapping[str, str]) -> str:
    """Put the absolute paths of the scripts into relay.toml; a JSON string is a TOML string too."""
    for name, path in scripts.items():
        config = config.replace(f'"{name}"', json.dumps(path, ensure_ascii=False))
    return config


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _git(project: Path, *args: str) -> str:
    """Run git as a person would, with no configuration but the project's; a failure is a `RelayError`."""
    env = proc.clean_env({"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"})
    ended = proc.run(["git", *args], cwd=str(project), env=env, limits=QUICK)
    if ended.code != 0:
        raise RelayError(f"`git {shlex.join(args)}` exited {ended.code}: {ended.text.strip()}", exit_code=Exit.HUMAN)
    return ended.text


def _relay(place: Path, project: Path, *args: str) -> int:
    """Run the command line in a process of its own, on this terminal, as a person would; return its exit code.

    Its process group is its own: a signal reaches it once, from here, and it ends in good order.
    """
    term.say(f"\n{term.style('$ ' + shlex.join(['relay', '-C', str(project), *args]), 'bold')}")
    env = proc.clean_env({"PYTHONPATH": str(Path(relay.__file__).parents[1])})
    # Neither read nor written: the person's relay configuration, and their state folder.
    env |= {"XDG_CONFIG_HOME": str(place / "home" / "config"), "XDG_STATE_HOME": str(place / "home" / "state")}
    command = [sys.executable, "-m", "relay", "-C", str(project), *args]
    child = subprocess.Popen(command, cwd=project, env=env, stdin=subprocess.DEVNULL, process_group=0)
    with child, _passed_on(child):
        code = child.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _passed_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass what asks this process to end on to the child, whose end then ends the demo."""

    def send(signum: int, _frame: FrameType | None) -> None:
        child.send_signal(signum)

    before = {name: signal.signal(name, send) for name in SIGNALS if signal.getsignal(name) != signal.SIG_IGN}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _explain(project: Path, run: str) -> None:
    """Say from the receipts what came of each finding, and what a person is asked now."""
    chain = ledger.receipts(ledger.at(repository.discover(project)), run)
    term.say(f"\n{chain[0].leg} passed {_passed(chain[0])}. What the reviewer said was looked at, too:")
    for sealed in chain:
        for finding in sealed.findings:
            where = f"{sealed.leg}, {finding.severity} at {finding.path}:{finding.line}"
            term.say(f"  {where}: {term.style(finding.evidence, 'bold')}, {PROOF[finding.evidence]}")
    term.say("Accepted is not shipped: that takes a person's word, given here for you.")


def _passed(sealed: Receipt) -> str:
    """Count what Relay ran by itself after a leg, and what of it was green."""
    exits = [check.exit for check in sealed.checks] + [one.exit for one in sealed.criteria if one.by == "relay"]
    return f"{exits.count(0)} of the {len(exits)} commands that Relay ran"


def _show(project: Path, run: str) -> None:
    """Show what was written: the ledger, the refs, the history, and what the program says now."""
    found = ledger.at(repository.discover(project))
    folder = found.folder(run)
    term.say(f"\n{term.style('The findings', 'bold')} over the rounds, and the criteria as acceptance saw them")
    term.table(*findings.table(findings.stories(found, run)))
    term.data("")
    show.criteria(glances.glance(found, run))
    term.say(f"\n{term.style('The tests', 'bold')} between base and head")
    for line in [line for sealed in ledger.receipts(found, run) for line in legs.swapped(sealed)]:
        term.data(f"  {line}")
    term.say(f"\n{term.style('The ledger', 'bold')} in {folder}")
    term.table([(f"  {path.relative_to(folder)}/", "  ".join(names)) for path, names in _folders(folder)])
    term.say(f"\n{term.style('The refs', 'bold')}: every commit that a leg made, and what was accepted")
    refs = _git(project, "for-each-ref", "--format=%(objectname:short) %(refname)")
    term.data(_indented(refs))
    term.say(f"\n{term.style('The history', 'bold')} of main")
    term.data(_indented(_git(project, "log", "--graph", "--format=%h %an: %s", "main")))
    term.data(_indented(_git(project, "show", "--stat", "--format=", "main")))
    term.say(f"\n{term.style('The program', 'bold')} now")
    for duration in ("1h30m", "1h30"):
        command = f"python3 -m eggtimer {duration}"
        ended = proc.run(command, cwd=str(project), env=proc.clean_env(), limits=QUICK)
        term.data(_indented(f"$ {command}\n{ended.text}"))


def _folders(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield each folder that holds files, with their names."""
    for path in sorted([folder, *(below for below in folder.rglob("*") if below.is_dir())]):
        names = sorted(entry.name for entry in path.iterdir() if entry.is_file())
        if names:
            yield path, names


def _next(place: Path, project: Path, run: str) -> None:
    """Say what to type next."""
    start = _start(project)
    term.say(f"\nNo model was called. All of this is in {place}; look around:")
    rows = (
        (f"{start} trace {run}", "how it came to be, from receipts alone"),
        (f"{start} show {run}", "where it stands, leg by leg"),
        (f"{start} show {run}/02-review note", "what one leg handed to the next"),
        (f"{start} verify {run}", "that every hash still fits"),
        (f"rm -r {shlex.quote(str(place))}", "when you are done"),
    )
    for command, why in rows:
        term.data(f"  {command}\n      {term.style(why, 'dim')}")


def _start(project: Path) -> str:
    """Return how a command for the project begins, as this person can type it."""
    return f"{_typed()} -C {shlex.quote(str(project))}"


def _typed() -> str:
    """Return how this person calls Relay: its name where PATH leads to this very program, else where it is."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py" or not called.is_file():
        return shlex.join([sys.executable, "-m", "relay"])
    found = shutil.which(called.name)
    return called.name if found and Path(found).samefile(called) else shlex.quote(str(called))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.strip("\n").splitlines())
