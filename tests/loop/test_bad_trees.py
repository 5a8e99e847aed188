"""What an agent leaves in its worktree: the work is kept, what cannot be carried is named, nothing is followed out."""

import os
import shlex
from pathlib import Path

import pytest

from tests.loop.faults import kept, sober, stopped, through, untouched, worktrees
from tests.world import BROKEN, FIXED, World

FIX = f"printf {shlex.quote(FIXED.replace(chr(10), chr(92) + 'n'))} > calc.py"


def _worker(world: World, text: str) -> None:
    world.shell("implementer", text, phase="implement", reply="exit")
    world.save()


def _named(world: World, leg: int = 0) -> dict[str, str]:
    return {item["path"]: item["why"] for item in world.receipts()[leg]["refused"]}


# --- commits ------------------------------------------------------------------------------------------------------


def test_the_tree_of_an_agent_that_commits_is_taken_and_its_commits_are_kept(world: World) -> None:
    lines = ["echo one > one.txt", "git add -A", "git commit -q -m mine", FIX, "git commit -q -a -m again"]
    _worker(world, "\n".join([*lines, "echo later > later.txt"]))
    with untouched(world):
        through(world.inside("run", world.spec()))
    run = world.only_run()
    leg, agent = (f"refs/relay/{run}/01-implement{suffix}" for suffix in ("", ".agent"))
    assert world.git("log", "--format=%s", "-2", agent) == "again\nmine"
    assert world.git("rev-parse", f"{leg}^") == world.receipts()[0]["base"]
    assert world.git("ls-tree", "--name-only", leg).split() == [
        *(".gitignore", "README.md", "calc.py", "later.txt", "one.txt", "relay.toml")
    ]
    through(world.inside("approve"))
    assert world.git("log", "--format=%s", "-1", "main") == "Make add add"


def test_an_agent_that_commits_and_then_takes_everything_back_did_nothing_and_its_commit_is_kept(world: World) -> None:
    _worker(
        world,
        f"{FIX}\ngit commit -q -a -m mine\ngit rm -q -r . && git checkout -q HEAD~1 -- . && git reset -q --soft HEAD~1",
    )
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "nothing changed")
    assert kept(world, "calc.py")[:2] == [BROKEN, FIXED]


def test_an_agent_in_the_middle_of_a_merge_hands_over_no_conflict_markers(world: World) -> None:
    world.git("branch", "theirs")
    world.git("switch", "-q", "theirs")
    world.commit({"calc.py": "def add(*all):\n    return sum(all)\n"})
    world.git("switch", "-q", "main")
    lines = ["echo more > more.txt", FIX, "git commit -q -a -m mine", "git merge -q theirs || true"]
    _worker(world, f"{'; '.join(lines)}; grep -q '<<<<<<<' calc.py")
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "calc.py", "conflict markers of an unfinished merge")
    assert kept(world, "more.txt")[0] == "more\n"
    assert not [text for text in kept(world, "calc.py") if "<<<<<<<" in text]
    assert "<<<<<<<" in (worktrees()[0] / "calc.py").read_text()


# --- what no commit can hold --------------------------------------------------------------------------------------

ODD = {
    "pipe": ("mkfifo pipe", "a FIFO"),
    "sub/pipe": ("mkdir -p sub; mkfifo sub/pipe", "a FIFO"),
    "socket": ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'", "a socket"),
    "nested/": (
        "git init -q nested; echo x > nested/x; git -C nested add x; git -C nested commit -q -m x",
        "an embedded repository",
    ),
    "passwd": ("ln -s /etc/passwd passwd", "a link that leads out of the tree"),
    "up": ("ln -s ../../../.. up", "a link that leads out of the tree"),
    "large.bin": ("head -c 62914560 /dev/zero > large.bin", "60 MB, more than 50 MB"),
    ".env": ("echo API_KEY=abcdef > .env", "looks like a secret"),
    "id_rsa": ("echo -----BEGIN > id_rsa", "looks like a secret"),
    "ignored.py": ("echo 'x = 1' > ignored.py", "ignored, but looks like source"),
    "node_modules": ("mkdir -p node_modules/a; echo x > node_modules/a/index.js", "installed or cached"),
}
"""A path, what makes it, and why it is not carried."""


def test_what_cannot_be_carried_is_named_and_the_rest_is_kept(world: World) -> None:
    once = world.folder / "once"
    lines = ["echo ignored.py >> .gitignore", *[make for make, _ in ODD.values()]]
    _worker(world, f"{FIX}\ntest -e {once} && exit 0\n: > {once}\n" + "\n".join(lines))
    with untouched(world):
        ran = world.inside("run", world.spec())
    through(ran)
    named = _named(world)
    assert named.keys() == ODD.keys()
    for path, (_, why) in ODD.items():
        assert why in named[path], path
        assert f"not carried: {path}" in ran.err, path
    assert "API_KEY" not in ran.err
    # said to the next leg, which finds a clean tree, and the odd things are on disk
    assert "node_modules" in (world.legs()[1] / "prompt.md").read_text()
    [left, _] = worktrees()
    assert (left / ".env").read_text() == "API_KEY=abcdef\n"
    assert (left / "nested" / "x").exists()
    assert [receipt["phase"] for receipt in world.receipts()] == ["implement", "implement", "review", "acceptance"]
    tree = set(world.git("ls-tree", "-r", "--name-only", f"refs/relay/{world.only_run()}/02-implement").split("\n"))
    assert tree == {".gitignore", "README.md", "calc.py", "relay.toml"}
    assert "ignored.py" in world.show(f"refs/relay/{world.only_run()}/02-implement", ".gitignore")


def test_an_agent_that_insists_on_a_secret_is_stopped_for_a_person_and_the_work_is_kept(world: World) -> None:
    _worker(world, f"{FIX}\necho API_KEY=abcdef > .env")
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "not carried: .env (looks like a secret)", "relay resume")
    assert kept(world, "calc.py") == [FIXED] * 3
    assert kept(world, ".env") == []
    for ref in world.refs("refs/relay/"):
        assert "API_KEY" not in world.git("log", "-p", "--format=", ref)


def test_a_fifo_where_git_reads_does_not_hang_anything(world: World) -> None:
    _worker(world, f"{FIX}\nrm .gitignore; mkfifo .gitignore; mkdir -p a; mkfifo a/.gitattributes")
    with untouched(world):
        sober(world.relay("run", world.spec()))
    assert kept(world, "calc.py")[0] == FIXED
    assert _named(world)[".gitignore"].startswith("a FIFO")


def test_a_folder_that_became_a_link_out_of_the_tree_is_not_followed(world: World) -> None:
    world.commit({"docs/a.md": "a\n", "docs/b.md": "b\n"})
    outside = world.folder / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("not yours\n")
    _worker(world, f"{FIX}\nrm -r docs; ln -s {outside} docs")
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "docs", "a link that leads out of the tree")
    assert "not yours\n" not in kept(world, "docs/a.md")
    assert (outside / "a.md").read_text() == "not yours\n"


# --- the worktree itself ------------------------------------------------------------------------------------------

GIT = {
    "gone": "rm .git",
    "a folder": "rm .git; git init -q .; git add -A; git commit -q -m mine",
    "another repository": "printf 'gitdir: {other}/.git\\n' > .git",
    "a link": "rm .git; ln -s {other}/.git .git",
    "a FIFO": "rm .git; mkfifo .git",
    "nonsense": "echo nonsense > .git",
}


@pytest.mark.parametrize(
    ("phase", "how"), [*(("implement", how) for how in GIT), ("review", "gone"), ("review", "another repository")]
)
def test_a_git_file_that_was_replaced_is_a_breach_and_the_work_is_kept(
    world: World, tmp_path: Path, how: str, phase: str
) -> None:
    other = World(tmp_path / "other")
    text = GIT[how].format(other=other.root)
    world.shell("implementer", FIX if phase == "review" else f"{FIX}\n{text}", phase="implement", reply="exit")
    if phase == "review":
        world.shell("review-judge", text, phase="review", reply="exit")
    world.save()
    with untouched(other), untouched(world):
        stopped(world.relay("run", world.spec()), 7, "breach: worktree/.git", "relay resume")
    leg = world.receipts()[-1]["leg"]
    assert world.show(f"refs/relay/{world.only_run()}/{leg}.void", "calc.py") == FIXED
    assert other.refs() == {"refs/heads/main": other.git("rev-parse", "HEAD")}
    with untouched(other), untouched(world):
        sober(world.relay("resume"))


def test_a_worktree_that_the_agent_removed_ends_the_leg_and_is_made_anew(world: World) -> None:
    once = world.folder / "once"
    _worker(world, f'test -e {once} || {{ : > {once}; rm -rf "$PWD"; exit 0; }}\n{FIX}')
    with untouched(world):
        first = world.inside("run", world.spec())
        stopped(first, first.code, "relay resume")
        assert first.code in {4, 7}
        through(world.inside("resume"))
    assert kept(world, "calc.py")[-1] == FIXED


def test_a_worktree_that_became_a_link_is_not_followed(world: World) -> None:
    outside = world.folder / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine\n")
    _worker(world, f'{FIX}\nmv "$PWD" "$PWD.moved"; ln -s {outside} "$PWD"')
    with untouched(world):
        ran = world.inside("run", world.spec())
    stopped(ran, ran.code, "relay resume")
    assert ran.code in {4, 7}
    assert kept(world, "mine.txt") == []
    assert (outside / "mine.txt").read_text() == "mine\n"
    sober(world.inside("resume"))
    assert [path.name for path in outside.iterdir()] == ["mine.txt"]


def test_a_worktree_that_was_swapped_for_the_persons_checkout_is_not_committed_from(world: World) -> None:
    world.write({"private.txt": "mine\n"})
    _worker(world, f'{FIX}\nmv "$PWD" "$PWD.moved"; ln -s {world.root} "$PWD"')
    with untouched(world):
        ran = world.inside("run", world.spec())
        sober(ran)
        assert ran.code in {4, 7}
        sober(world.inside("resume"))
    assert kept(world, "private.txt") == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_named_and_the_rest_is_kept(world: World) -> None:
    _worker(world, f"{FIX}\nmkdir closed; echo x > closed/x; chmod 0 closed; echo y > y; chmod 0 y")
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "closed", "cannot be read")
    assert kept(world, "calc.py")[0] == FIXED
