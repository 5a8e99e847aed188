"""What a breach left is told, with what shows it, until a person cleared it away; going on washes nothing out."""

import re
import subprocess
from pathlib import Path

import pytest

from relay.errors import Exit
from tests.loop.dusk import short
from tests.loop.faults import stopped, through
from tests.world import Ran, World

ONCE = """
if test -e {once}; then sed -i 's/a - b/a + b/' calc.py; exit 0; fi
touch {once}
{does}
"""
CROSSES = {
    "overwrites a file": ("echo stolen > {root}/README.md", "`README.md` in your checkout is not as it was before"),
    "removes a file": ("rm {root}/README.md", "`README.md` in your checkout is not as it was before"),
    "stages a file": (
        "unset GIT_DIR; echo x > {root}/README.md; git -C {root} add README.md",
        "`README.md` in your checkout is not as it was before",
    ),
    "plants a file": ("echo x > '{root}/a b.txt'", "`a b.txt` in your checkout is not as it was before"),
    "leaves a branch": ("git branch evil", "branch `evil` is there, and was not before"),
    "leaves a tag": ("git tag evil", "`refs/tags/evil` is there, and was not before"),
    "moves a branch": (
        "git update-ref refs/heads/side $(git rev-list --max-parents=0 HEAD)",
        "branch `side` is not as it was before",
    ),
}


def said(ran: Ran) -> str:
    """Require that it went well; return all that it said."""
    through(ran)
    return ran.out + ran.err


def crossed(world: World, does: str) -> str:
    """Let a worker cross its boundary the first time; return what Relay said."""
    world.commit({"more.txt": "1\n"})
    world.git("branch", "side")
    short(world, ONCE.format(once=world.folder / "once", does=does.format(root=world.root)))
    ran = world.inside("run", world.spec())
    stopped(ran, int(Exit.BREACH))
    return ran.err


def shown(text: str, what: str) -> str:
    """Return the command beside what is left."""
    [command] = re.findall(rf"^ *{re.escape(what)} 01-implement: `(.*)`$", text, re.MULTILINE)
    return str(command)


def state(world: World) -> tuple[str, ...]:
    """Return all that a command could change of what a person has."""
    files = {path.name: path.read_bytes() for path in world.root.iterdir() if path.is_file()}
    return str(sorted(files.items())), world.git("for-each-ref"), world.git("status", "--porcelain=v2", "--ignored")


@pytest.mark.parametrize(("does", "what"), CROSSES.values(), ids=CROSSES)
def test_what_a_breach_left_is_told_with_a_command_that_shows_it_and_changes_nothing(
    world: World, does: str, what: str
) -> None:
    command = shown(crossed(world, does), what)
    assert command in said(world.inside("show", f"{world.only_run()}/01"))
    before = state(world)
    ran = subprocess.run(["sh", "-c", command], cwd="/", check=True, capture_output=True)
    assert ran.stdout.strip()
    assert state(world) == before


def test_what_a_person_set_right_is_told_no_more(world: World) -> None:
    crossed(world, "echo x > {root}/README.md; git branch evil; unset GIT_DIR; git -C {root} add README.md")
    assert "not as it was" in said(world.inside("report", world.only_run()))
    world.git("restore", "--staged", "--worktree", "README.md")
    world.git("branch", "-D", "evil")
    told = said(world.inside("report", world.only_run()))
    assert ("not as it was" in told, "was not before" in told) == (False, False)


@pytest.mark.parametrize("name", ["*", "[x].md", "-r", "a b\tc", "README.md\u202e", "two\nlines", "it changed"])
def test_odd_names_forge_no_line_and_no_command(world: World, name: str) -> None:
    path = str(world.root / name).replace("'", "")
    told = crossed(world, f"printf x > '{path}'")
    [line] = [line for line in told.splitlines() if "in your checkout is not as it was" in line]
    command = line.partition(": `ls ")[2]
    if not name.isprintable():
        assert command == ""
        return
    ran = subprocess.run(["sh", "-c", f"ls {command[:-1]}"], cwd="/", check=True, capture_output=True, text=True)
    assert len(ran.stdout.splitlines()) == 1


@pytest.mark.parametrize("kind", ["overwrites a file", "plants a file", "leaves a branch", "leaves a tag"])
def test_going_on_does_not_wash_it_out(world: World, kind: str) -> None:
    does, what = CROSSES[kind]
    crossed(world, does)
    command = shown(said(world.inside("resume")), what)
    assert command in said(world.inside("report", world.only_run()))
    assert shown(said(world.inside("approve")), what) == command


def test_of_a_branch_that_anybody_may_have_moved_since_nothing_is_said_once_the_run_went_on(world: World) -> None:
    does, what = CROSSES["moves a branch"]
    crossed(world, does)
    assert what not in said(world.inside("resume"))


def test_a_branch_that_is_gone_is_told_without_a_command(world: World) -> None:
    assert "branch `side` is not as it was before 01-implement\n" in crossed(world, "git branch -q -D side")


def test_a_change_of_a_persons_that_a_breach_took_away_is_named(world: World) -> None:
    (world.root / "README.md").write_text("half a thought\n")
    told = crossed(world, "unset GIT_DIR; git -C {root} checkout -q -- README.md")
    assert "breach: checkout/README.md changed" in told
    assert "`README.md` in your checkout is not as it was before 01-implement" in told


def test_a_breach_is_counted_and_shown_by_its_name(world: World, tmp_path: Path) -> None:
    crossed(world, CROSSES["overwrites a file"][0])
    assert re.search(r"^\S+ +breach ", said(world.inside("status")), re.MULTILINE)
    assert "1 breached its boundary" in said(world.inside("report", world.only_run()))
    page = tmp_path / "page.html"
    through(world.inside("report", world.only_run(), "--html", str(page)))
    text = page.read_text()
    assert f"ls -la {world.root}/README.md" in text


def test_the_page_lists_all_that_a_breach_left(world: World, tmp_path: Path) -> None:
    does = "for n in 1 2 3 4 5; do echo x > {root}/f$n; done; unset GIT_DIR; git -C {root} switch -q -c other"
    crossed(world, does)
    page = tmp_path / "page.html"
    through(world.inside("report", world.only_run(), "--html", str(page)))
    text = page.read_text()
    named = [f"<code>f{n}</code> in your checkout is not as it was" for n in range(1, 6)]
    named += ["<code>HEAD</code> is not as it was", "branch <code>other</code> is there, and was not"]
    assert [one for one in named if one not in text and re.sub("</?code>", "`", one) not in text] == []


def test_the_checkout_of_a_run_without_a_breach_is_not_looked_at(world: World) -> None:
    short(world)
    through(world.inside("run", world.spec()))
    (world.root / "README.md").write_text("mine\n")
    assert "README.md" not in said(world.inside("report", world.only_run()))
