"""The tools of an agent over an API in a jail: commands are held by it, long output is shown in it."""

import os
from pathlib import Path

import pytest

from relay.host import jail
from relay.terms import Kind
from tests.backends.hands import Desk


def jailed(root: Path, rung: jail.Rung, kind: Kind, path: str = "") -> Desk:
    """Return hands whose commands are in a jail, as a leg of that kind has it; `path` leads to what it shows."""
    desk = Desk(root.resolve(), kind)
    desk.git("init", "-q")
    (desk.root / "a.txt").write_text("one\n")
    mounts = jail.Mounts(
        tree=desk.root,
        access=jail.Access.WRITE if kind == "work" else jail.Access.SCRATCH,
        home=Path.home().resolve(),
        readable=(*jail.readable(path or os.environ["PATH"], Path.home()), Path(desk.ask.reply_path).parent),
    )
    desk.cell = jail.Cell(rung=rung, mounts=mounts)
    return desk


@pytest.fixture
def rung() -> jail.Rung:
    found, said = jail.choose("auto")
    if not found.holds:
        pytest.skip(said)
    return found


def test_a_workers_command_changes_its_worktree_and_nothing_else(tmp_path: Path, rung: jail.Rung) -> None:
    desk = jailed(tmp_path, rung, "work")
    out = tmp_path / "out.txt"
    done = desk("bash", command=f"echo two > a.txt; echo evil > {out}; echo evil > ~/.profile; echo done")
    assert done.text.endswith("done")
    assert (desk.root / "a.txt").read_text() == "two\n"
    assert not out.exists()
    assert not (Path.home() / ".profile").exists()


def test_what_a_judges_command_writes_vanishes_and_reading_shows_the_real_tree(tmp_path: Path, rung: jail.Rung) -> None:
    desk = jailed(tmp_path, rung, "judge")
    assert desk("bash", command="echo two > a.txt; cat a.txt").text == "two"
    assert desk("read", path="a.txt").text == "     1\tone"


def test_a_command_reaches_no_network(tmp_path: Path, rung: jail.Rung) -> None:
    desk = jailed(tmp_path, rung, "work")
    done = desk("bash", command="exec 3<>/dev/tcp/127.0.0.1/9 || echo closed; cat /proc/net/dev | grep -c :")
    assert done.text.endswith("closed\n1")


def test_a_search_runs_in_the_jail(tmp_path: Path, rung: jail.Rung) -> None:
    assert desk_lines(jailed(tmp_path, rung, "judge")) == ["a.txt:1:one"]


def desk_lines(desk: Desk) -> list[str]:
    return desk("search", pattern="on[e]").text.splitlines()


def test_a_ripgrep_that_the_jail_does_not_show_is_not_needed(
    tmp_path: Path, rung: jail.Rung, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "bin"
    hidden.mkdir()
    (hidden / "rg").write_text("#!/bin/sh\nexit 0\n")
    (hidden / "rg").chmod(0o755)
    shown = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{hidden}{os.pathsep}{shown}")
    assert desk_lines(jailed(tmp_path, rung, "work", shown)) == ["a.txt:1:one"]


def test_a_long_output_can_be_looked_at_in_the_jail(tmp_path: Path, rung: jail.Rung) -> None:
    desk = jailed(tmp_path, rung, "judge")
    shown = desk("bash", command="seq 100000").text
    path = shown.partition("the whole is in `")[2].partition("`")[0]
    assert desk("bash", command=f"grep -x 54321 {path}; echo x >> {path}").text.startswith("54321\n")
    assert Path(path).read_text().endswith("100000\n")


def test_a_command_that_no_argument_can_hold_runs_in_the_jail_and_a_nul_is_refused(
    tmp_path: Path, rung: jail.Rung
) -> None:
    desk = jailed(tmp_path, rung, "work")
    text = "x" * 200_000
    assert desk("bash", command=f"cat > big.txt <<'END'\n{text}\nEND\ncat; echo done").text == "done"
    assert (desk.root / "big.txt").read_text() == f"{text}\n"
    assert "NUL" in desk("bash", command="echo a\0b").text
    assert not desk("search", pattern="x" * 200_000).ok
