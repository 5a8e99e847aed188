"""No hook, filter, monitor or viewer runs for a git call of Relay's own, whoever put it there, and the work is kept."""

import shlex
from pathlib import Path

import pytest

from tests.loop.faults import kept, sober, status, stopped, through, untouched
from tests.world import FIXED, World

HOOKS = (
    *("applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-checkout", "post-commit", "post-index-change"),
    *("post-merge", "post-rewrite", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push"),
    *("pre-rebase", "prepare-commit-msg", "push-to-checkout", "reference-transaction", "sendemail-validate", "update"),
)
FIX = f"printf {shlex.quote(FIXED.replace(chr(10), chr(92) + 'n'))} > calc.py"


class Trap:
    """Programs that leave a trace when they run."""

    def __init__(self, world: World) -> None:
        self.folder = world.folder / "trap"
        self.folder.mkdir()

    def program(self, name: str, then: str = "cat") -> Path:
        """Write a program that leaves its name and does something."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n: > {self.folder}/ran-$(basename $0)\n{then}\n")
        path.chmod(0o755)
        return path

    @property
    def ran(self) -> list[str]:
        """The programs that ran."""
        return sorted(path.name.removeprefix("ran-") for path in self.folder.glob("ran-*"))


@pytest.fixture
def trap(world: World) -> Trap:
    return Trap(world)


def _install(folder: Path, trap: Trap, then: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in HOOKS:
        (folder / name).write_bytes(trap.program(name, then).read_bytes())
        (folder / name).chmod(0o755)


THEN = {
    "fails": "echo no >&2; exit 1",
    "plants files": "touch planted.py",  # no git: a hook that calls it is called by it
    "wants a terminal": "exec < /dev/tty > /dev/tty 2>&1; printf 'sure? '; read answer; exit 1",
}


@pytest.mark.parametrize("what", THEN)
def test_a_hook_of_the_person_does_not_run_and_the_work_is_committed_and_shipped(
    world: World, trap: Trap, what: str
) -> None:
    _install(world.root / ".git" / "hooks", trap, THEN[what])
    with untouched(world):
        through(world.relay("run", world.spec()))
    through(world.relay("approve"))
    assert trap.ran == []
    assert world.show("main", "calc.py") == FIXED
    assert (world.root / "calc.py").read_text() == FIXED
    assert status(world) == ""
    assert "planted.py" not in world.git("ls-tree", "-r", "--name-only", "main")


@pytest.mark.parametrize("where", ["elsewhere", "in the tree", "of the user"])
def test_a_hooks_path_does_not_lead_to_hooks_that_run(world: World, trap: Trap, where: str) -> None:
    """As husky and pre-commit set it; hooks that are files of the tree could be rewritten by any implementer."""
    folder = world.root / ".hooks" if where == "in the tree" else world.folder / "hooks"
    _install(folder, trap, "exit 1")
    if where == "in the tree":
        world.git("add", ".hooks")
        world.git("commit", "-q", "-m", "hooks")
    path = ".hooks" if where == "in the tree" else str(folder)
    world.git("config", *(["--global"] if where == "of the user" else []), "core.hooksPath", path)
    with untouched(world):
        through(world.relay("run", world.spec()))
    through(world.relay("approve"))
    assert trap.ran == []
    assert world.show("main", "calc.py") == FIXED


def test_a_hook_that_refuses_the_agents_own_commit_does_not_refuse_relays(world: World, trap: Trap) -> None:
    world.shell("implementer", f"{FIX}\ngit commit -q -a -m mine && exit 9\nexit 0", phase="implement", reply="exit")
    world.save()
    (world.root / ".git" / "hooks").mkdir()
    trap.program("pre-commit", "exit 1").rename(world.root / ".git" / "hooks" / "pre-commit")
    with untouched(world):
        through(world.relay("run", world.spec()))
    assert trap.ran == ["pre-commit"]
    assert kept(world, "calc.py") == [FIXED]


# --- planted by an agent ------------------------------------------------------------------------------------------

CONFIG = {
    "core.hooksPath": "{trap}",
    "core.fsmonitor": "{trap}/monitor",
    "core.editor": "{trap}/editor",
    "core.pager": "{trap}/pager",
    "core.askPass": "{trap}/askpass",
    "core.sshCommand": "{trap}/ssh",
    "core.gitProxy": "{trap}/proxy",
    "core.alternateRefsCommand": "{trap}/alternates",
    "diff.external": "{trap}/external",
    "diff.own.textconv": "{trap}/textconv",
    "diff.own.command": "{trap}/command",
    "filter.own.clean": "{trap}/clean",
    "filter.own.smudge": "{trap}/smudge",
    "filter.own.process": "{trap}/process",
    "merge.own.driver": "{trap}/driver",
    "gpg.program": "{trap}/gpg",
    "commit.gpgSign": "true",
    "credential.helper": "{trap}/helper",
    "uploadpack.packObjectsHook": "{trap}/pack",
    "trailer.own.command": "{trap}/trailer",
    "alias.status": "!{trap}/alias",
    "interactive.diffFilter": "{trap}/interactive",
}
PROGRAMS = [value.rpartition("/")[2] for value in CONFIG.values() if "/" in value]


def test_programs_that_an_agent_put_into_the_settings_never_run_and_are_a_breach(world: World, trap: Trap) -> None:
    _install(trap.folder, trap, "exit 1")
    for name in PROGRAMS:
        trap.program(name)
    lines = [f"git config {name} '{value.format(trap=trap.folder)}'" for name, value in CONFIG.items()]
    attributes = "printf '* filter=own diff=own merge=own\\n' > .gitattributes"
    # the settings come last: the agent's own git would run what they name
    world.shell("implementer", "\n".join([FIX, attributes, *lines]), phase="implement", reply="exit")
    world.save()
    ran = world.relay("run", world.spec())
    stopped(ran, 7, "breach: config changed", "relay show")
    assert trap.ran == []
    assert world.show(f"refs/relay/{world.only_run()}/01-implement.void", "calc.py") == FIXED
    for verb in ("status", "resume"):
        sober(world.relay(verb))
    assert trap.ran == []


@pytest.mark.parametrize("phase", ["implement", "review"])
def test_a_hook_that_an_agent_planted_never_runs_and_is_a_breach(world: World, trap: Trap, phase: str) -> None:
    _install(trap.folder, trap, "exit 1")
    plant = f"common=$(git rev-parse --git-common-dir)\nmkdir -p $common/hooks\ncp {trap.folder}/p* $common/hooks/"
    text = f"{FIX}\n{plant}" if phase == "implement" else plant
    name = "implementer" if phase == "implement" else "review-judge"
    world.shell(name, text, phase=phase, reply="exit")
    world.save()
    stopped(world.relay("run", world.spec()), 7, "breach: hooks/pre-commit appeared")
    world.relay("resume")
    assert trap.ran == []
    assert FIXED in kept(world, "calc.py")


def test_attributes_of_an_agent_do_not_start_the_filters_of_the_person(world: World, trap: Trap) -> None:
    for name in ("clean", "smudge"):
        world.git("config", f"filter.own.{name}", str(trap.program(name)))
    world.git("config", "diff.own.textconv", str(trap.program("textconv")))
    world.git("config", "diff.own.command", str(trap.program("command")))
    world.implementer({"calc.py": FIXED, ".gitattributes": "* filter=own diff=own\n"})
    with untouched(world):
        through(world.relay("run", world.spec()))
    assert trap.ran == []
    assert kept(world, "calc.py") == [FIXED]


def test_settings_that_an_agent_put_beside_its_own_worktree_never_count(world: World, trap: Trap) -> None:
    monitor = trap.program("monitor")
    world.git("config", "extensions.worktreeConfig", "true")
    plant = f"git config --worktree core.hooksPath {trap.folder}\ngit config --worktree core.fsmonitor {monitor}"
    _install(trap.folder, trap, "exit 1")
    world.shell("implementer", f"{FIX}\n{plant}", phase="implement", reply="exit")
    world.save()
    with untouched(world):
        stopped(world.relay("run", world.spec()), 7, "breach: worktree/config.worktree")
    assert trap.ran == []
    assert FIXED in kept(world, "calc.py")


def test_a_repository_that_an_agent_nests_does_not_start_its_monitor(world: World, trap: Trap) -> None:
    monitor = trap.program("monitor")
    nested = f"git init -q nested\ngit -C nested config core.fsmonitor {monitor}\ntouch nested/x"
    world.shell("implementer", f"{FIX}\n{nested}", phase="implement", reply="exit")
    world.save()
    with untouched(world):
        world.relay("run", world.spec())
    assert trap.ran == []
    assert FIXED in kept(world, "calc.py")
