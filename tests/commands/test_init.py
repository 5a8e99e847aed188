"""A relay.toml and a spec to start from work as they are, and nothing that is there is overwritten."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from relay.record import config, spec
from tests.world import FIXED, SAFETY, World


def test_what_init_writes_runs_to_the_end_as_it_is(tmp_path: Path) -> None:
    world = World(tmp_path, {"calc.py": "def add(a, b):\n    return a - b\n"})
    assert world.inside("init").code == 0
    world.git("add", "relay.toml")
    world.git("commit", "-q", "-m", "Line up the agents")
    assert world.inside("doctor").code == 0
    assert world.inside("run", world.spec()).code == 4
    effect = world.receipts()[0]["effect"]
    Path(effect["worktree"], "calc.py").write_text(FIXED)
    Path(effect["reply"]).write_text(json.dumps({"status": "done", "summary": "add adds"}))
    ran = world.inside("resume")
    assert ran.code == 0, ran
    assert "accepted" in ran.err


def test_it_names_the_branch_and_can_be_read(world: World) -> None:
    (world.root / "relay.toml").unlink()
    world.git("switch", "-q", "-c", 'work/"quoted"')
    world.inside("init")
    read = config.parse((world.root / "relay.toml").read_bytes(), "relay.toml")
    assert read.base == 'work/"quoted"'
    world.git("checkout", "-q", "--detach")
    (world.root / "relay.toml").unlink()
    world.inside("init")
    assert config.parse((world.root / "relay.toml").read_bytes(), "relay.toml").base is None


def test_it_says_what_to_type_next(tmp_path: Path) -> None:
    ran = World(tmp_path).inside("init")
    assert "git add relay.toml && git commit" in ran.err
    assert "relay doctor" in ran.err
    assert "relay new NAME" in ran.err


def test_who_git_does_not_know_is_told_what_to_type_before_the_first_commit(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert "git config" not in world.inside("init").err
    world.git("init", "-q", "-b", "main", str(tmp_path / "new"))
    new = tmp_path / "new"
    ran, looked = world.inside("init", folder=new), world.inside("doctor", "--json", folder=new)
    typed = [line.removeprefix("hint:").strip() for line in ran.err.splitlines()]
    first = next(number for number, line in enumerate(typed) if line.startswith("git "))
    assert typed[first + 1].startswith("git add . && git commit")
    assert typed[first] in [event["hint"] for event in looked.events if event["level"] == "warn"]
    world.git("config", "user.useConfigOnly", "true", folder=new)  # as on a machine whose name git cannot guess from
    with pytest.raises(AssertionError, match="tell me who you are"):
        world.git("commit", "-q", "--allow-empty", "-m", "x", folder=new)
    for line in typed[first : first + 2]:
        subprocess.run(["sh", "-c", line], cwd=new, check=True, timeout=SAFETY, stdout=subprocess.DEVNULL)
    assert "git knows no user.name" not in world.inside("doctor", folder=new).out


def test_it_never_overwrites(world: World) -> None:
    before = (world.root / "relay.toml").read_bytes()
    ran = world.inside("init")
    assert ran.code == 0
    assert "is there already" in ran.err
    assert (world.root / "relay.toml").read_bytes() == before
    (world.root / "relay.toml").write_text("no = 1\n")
    ran = world.inside("init")
    assert ran.code == 2
    assert "`no` is not a known key" in ran.err
    assert (world.root / "relay.toml").read_text() == "no = 1\n"


def test_a_link_that_leads_nowhere_is_not_followed(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.root / "relay.toml").symlink_to(tmp_path / "elsewhere.toml")
    assert world.inside("init").code == 2
    assert not (tmp_path / "elsewhere.toml").exists()


def test_outside_of_git_and_in_a_bare_repository_it_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    (tmp_path / "plain").mkdir()
    world.git("init", "-q", "--bare", str(tmp_path / "bare"))
    for name, text in (("plain", "is not in a git repository"), ("bare", "a bare repository has no checkout")):
        ran = world.inside("init", folder=tmp_path / name)
        assert ran.code == 2
        assert text in ran.err
        assert not (tmp_path / name / "relay.toml").exists()
        assert world.inside("new", "x", folder=tmp_path / name).code == 2


def test_without_commits_it_warns_and_says_what_to_commit(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.git("init", "-q", "-b", "main", str(tmp_path / "empty"))
    ran = world.inside("-C", tmp_path / "empty", "init")
    assert ran.code == 0
    assert "the repository has no commits yet" in ran.err
    assert f"git -C {tmp_path / 'empty'} add . && git -C" in ran.err
    assert (tmp_path / "empty" / "relay.toml").is_file()


def test_from_a_folder_below_it_is_written_at_the_top(tmp_path: Path) -> None:
    world = World(tmp_path, {"a/b/c.txt": "c\n"})
    world.inside("init", folder=world.root / "a" / "b")
    assert (world.root / "relay.toml").is_file()


def _program(folder: Path, name: str) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
    (folder / "bin" / name).chmod(0o700)


@pytest.mark.parametrize(
    ("programs", "keys", "backends"),
    [
        ((), (), ["human", "command", "command"]),
        (("claude",), (), ["claude-code", "command", "command"]),
        (("claude", "codex"), (), ["claude-code", "codex", "claude-code"]),
        ((), ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"), ["anthropic", "openai", "anthropic"]),
        (("codex",), ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"), ["anthropic", "codex", "anthropic"]),
    ],
)
def test_models_that_a_person_has_are_lined_up_to_check_each_other(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    programs: tuple[str, ...],
    keys: tuple[str, ...],
    backends: list[str],
) -> None:
    world = World(tmp_path)
    (tmp_path / "bin").mkdir()
    for name in ("git", "sh", "env"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    for name in programs:
        _program(tmp_path, name)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in keys:
        monkeypatch.setenv(name, "a key of nobody's")
    assert world.inside("init").code == 0
    read = config.parse((world.root / "relay.toml").read_bytes(), "relay.toml")
    served = [read.agents[read.phase[name].agent or ""] for name in read.phases]
    assert [agent.backend for agent in served] == backends
    assert served[0].vendor != served[1].vendor


def test_a_new_spec_can_be_read_and_runs(world: World) -> None:
    ran = world.inside("new", "Fix the login")
    assert ran.code == 0
    assert "relay run tasks/fix-the-login.md" in ran.err
    path = world.root / "tasks" / "fix-the-login.md"
    assert "is still the sample" in world.inside("run", path).err
    path.write_text(path.read_text().replace(spec.PLACEHOLDER, "It does not let me in."))
    read = spec.read(path)
    assert read.title == "Fix the login"
    assert [criterion.check is not None for criterion in read.criteria] == [True, True]
    assert world.inside("run", "tasks/fix-the-login.md", "--dry-run").code == 0


def test_a_new_spec_never_overwrites(world: World) -> None:
    world.write({"tasks/mine.md": "mine\n"})
    ran = world.inside("new", "mine.md")
    assert ran.code == 2
    assert "is there already" in ran.err
    assert (world.root / "tasks" / "mine.md").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "/etc/x", "...md", "a\nb", "-"])
def test_a_name_that_is_none_is_refused(world: World, name: str) -> None:
    ran = world.inside("new", "--", name)
    assert ran.code == 2
    assert not (world.root / "tasks").exists()


def test_a_file_where_the_folder_would_be_is_told(world: World) -> None:
    world.write({"tasks": "a file\n"})
    ran = world.inside("new", "x")
    assert ran.code in {2, 4}
    assert "tasks" in ran.err
