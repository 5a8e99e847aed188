"""What a schedule leaves when it is taken away, or when its repository is: nothing that is Relay's, all that is not."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.schedule import machines, records
from tests.world import SAFETY, World


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the one folder on PATH."""
    machines.programs(tmp_path / "bin", "mkdir", "sed", "tail", "wc")
    return machines.bare(tmp_path / "bin", monkeypatch)


def _script() -> Path:
    [script] = (Path(os.environ["XDG_CONFIG_HOME"]) / "relay" / "schedule").glob("*.sh")
    return script


@pytest.mark.parametrize("verb", ["install", "remove"])
def test_a_line_of_a_persons_between_markers_that_an_editor_gave_other_ends_is_kept_beside(
    world: World, bin_: Path, verb: str
) -> None:
    table = machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    begin, rest = table.read_text().split("\n", 1)
    table.write_bytes(f"{begin}\n0 9 * * * /my/own/job\n{rest}".replace("\n", " \r\n").encode())
    kept = _script().with_suffix(".cron.edited")
    ran = world.inside("schedule", verb, *(("--with", "cron") if verb == "install" else ()))
    assert (ran.code, f"kept as `{kept}`" in ran.err) == (0, True), ran
    assert "0 9 * * * /my/own/job" in kept.read_text()


def test_what_crontab_refuses_to_take_away_is_not_said_to_be_gone(world: World, bin_: Path) -> None:
    table = machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    whole = (bin_ / "crontab").read_text()
    (bin_ / "crontab").write_text(whole.replace("-r) ", "-r) echo the disk is read-only >&2; exit 1;; -x) "))
    ran = world.inside("schedule", "remove")
    assert (ran.code, "the disk is read-only" in ran.err, "no more nights" in ran.err) == (4, True, False), ran
    assert _script().exists()
    assert world.inside("--json", "schedule", "status").events[0]["armed"] == "active"
    (bin_ / "crontab").write_text(whole)
    assert world.inside("schedule", "remove").code == 0
    assert not table.exists()


def test_a_timer_that_systemd_does_not_let_go_stays_on_record(world: World, bin_: Path) -> None:
    machines.programs(bin_, systemctl="", loginctl="echo yes")
    assert world.inside("schedule", "install", "--with", "systemd").code == 0
    refuses = (
        'case "$*" in *disable*) echo Access denied; exit 1 ;; *is-active*) echo {} ;; *is-enabled*) echo {} ;; esac'
    )
    machines.programs(bin_, systemctl=refuses.format("inactive", "enabled"))
    ran = world.inside("schedule", "remove")
    assert (ran.code, "Access denied" in ran.err) == (4, True), ran
    assert records.schedule(world)["method"] == "systemd"
    machines.programs(bin_, systemctl=refuses.format("inactive", "not-found"))
    assert world.inside("schedule", "remove").code == 0, "what is gone already need not be let go"


def test_an_agent_that_launchd_does_not_let_go_stays_on_record(world: World, bin_: Path) -> None:
    machines.programs(bin_, launchctl="")
    assert world.inside("schedule", "install", "--with", "launchd").code == 0
    machines.programs(
        bin_, launchctl='case "$1" in bootout) echo Boot-out failed: 5: Input/output error; exit 5 ;; esac'
    )
    ran = world.inside("schedule", "remove")
    assert (ran.code, "Input/output error" in ran.err) == (4, True), ran
    assert records.schedule(world)["method"] == "launchd"
    machines.programs(bin_, launchctl="echo No such process; exit 3")
    assert world.inside("schedule", "remove").code == 0, "what it does not know need not be let go"


def test_launchd_is_asked_again_while_it_still_holds_the_name_of_a_night_that_ran(world: World, bin_: Path) -> None:
    busy = f"[ -e {bin_}/free ] || {{ : >{bin_}/free; echo Bootstrap failed: 5: Input/output error; exit 5; }}"
    machines.programs(bin_, launchctl=f'case "$1" in bootstrap) {busy} ;; esac')
    assert world.inside("schedule", "install", "--with", "launchd").code == 0
    assert [call.split()[0] for call in machines.calls(bin_, "launchctl")] == ["bootout", "bootstrap", "bootstrap"]


def _type(err: str, folder: Path) -> None:
    """Type the last line that was left to type, but for the pushing, in that folder."""
    line = err.strip().splitlines()[-1].removeprefix("hint: ").strip()
    command = " && ".join(part for part in line.split(" && ") if not part.endswith("push"))
    env = {**os.environ, "PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull}
    names = [f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
    subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env={**env, **dict.fromkeys(names, "ada")}, check=True, timeout=SAFETY
    )


def test_the_commands_for_a_workflow_commit_it_alone_and_work_where_the_person_is(tmp_path: Path) -> None:
    world = World.simple(tmp_path / "my project")
    (world.root / "mine.txt").write_text("half done\n")
    world.git("add", "mine.txt")
    for verb in (("install", "--with", "actions"), ("remove",)):
        ran = world.inside("-C", str(world.root), "schedule", *verb, folder=world.folder)
        assert ran.code == 0, ran
        _type(ran.err, world.folder)
        changed = world.git("show", "--format=", "--name-only", "HEAD").split()
        assert changed == [".github/workflows/relay-nightly.yml"]
    assert world.git("status", "--porcelain").splitlines() == ["A  mine.txt"]


def test_a_workflow_that_was_never_committed_is_taken_away_without_a_word_of_git(world: World) -> None:
    assert world.inside("schedule", "install", "--with", "actions").code == 0
    ran = world.inside("schedule", "remove")
    assert (ran.code, "git" in ran.err.replace(".github", "")) == (0, False), ran
    assert "actions starts no more nights here" in ran.err
    assert world.inside("schedule", "install", "--with", "actions").code == 0
    world.git("add", ".github")
    _type(world.inside("schedule", "remove").err, world.root)
    assert world.git("status", "--porcelain") == ""


def test_a_workflow_that_is_committed_as_it_is_needs_no_second_commit(world: World) -> None:
    for left in ("git add", "git push"):
        ran = world.inside("schedule", "install", "--with", "actions")
        assert f"left to type:\nhint: {left}" in ran.err, ran
        world.git("add", ".github")
        world.git("commit", "-q", "-m", "nights", "--allow-empty")


def _night(table: Path) -> str:
    """Start Relay's line of a crontab as cron would, and return what cron would send by mail."""
    [line] = [line for line in table.read_text().splitlines() if " /bin/sh " in line]
    env = {"HOME": os.environ["HOME"], "PATH": "/usr/bin:/bin"}
    command = line.split(maxsplit=5)[5]
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd="/", env=env, capture_output=True, check=False, timeout=SAFETY
    )
    return done.stderr.decode()


@pytest.fixture
def gone(tmp_path: Path, bin_: Path) -> Path:
    """Return the crontab that still names a repository which was deleted."""
    world = World.simple(tmp_path / machines.ODD)
    table = machines.crontab(bin_)
    table.write_text("0 5 * * * mine\n")
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    shutil.rmtree(world.root)
    return table


def _undo(bin_: Path, said: str) -> None:
    """Type what was said to take a schedule away."""
    _, _, command = said.partition("take its schedule away: ")
    env = {"PATH": f"{bin_}:{os.defpath}"}
    subprocess.run(["/bin/sh", "-c", command], cwd="/", env=env, check=True, timeout=SAFETY)


def test_a_repository_that_was_deleted_is_said_once_with_what_takes_its_line_away(
    gone: Path, bin_: Path, tmp_path: Path
) -> None:
    gone.write_text(gone.read_text() + "0 6 * * * mine as well\n")
    said = _night(gone)
    assert f"there is no `{tmp_path / machines.ODD}" in said
    assert _night(gone) == "", "every other night is silent"
    script = _script()
    _undo(bin_, said)
    assert gone.read_text() == "0 5 * * * mine\n0 6 * * * mine as well\n"
    assert not script.exists()


def test_taking_a_line_away_by_hand_keeps_what_a_person_put_between_or_below_half_of_the_markers(
    gone: Path, bin_: Path
) -> None:
    said = _night(gone)
    lines = gone.read_text().splitlines(keepends=True)
    gone.write_text("".join((*lines[:2], "0 9 * * * /my/own/job\n", *lines[2:-1], "0 6 * * * mine as well\n")))
    _undo(bin_, said)
    assert gone.read_text() == "0 5 * * * mine\n0 9 * * * /my/own/job\n0 6 * * * mine as well\n"


def test_a_disk_that_comes_back_and_goes_again_is_said_again(gone: Path, world: World) -> None:
    folder = Path(_night(gone).partition("there is no `")[2].partition("` any more")[0])
    world.root.rename(folder)
    assert _night(gone) == ""
    shutil.rmtree(folder)
    assert "there is no `" in _night(gone)


@pytest.mark.parametrize("again", [True, False])
def test_the_workflow_of_a_repository_that_was_moved_is_taken_away_where_it_is_now(
    world: World, *, again: bool
) -> None:
    install = ("schedule", "install", "--with", "actions")
    assert world.inside(*install).code == 0
    world.git("add", ".github")
    world.git("commit", "-q", "-m", "nights")
    world.root = world.root.rename(world.folder / "moved")
    if again:
        assert "Start no more nights" not in world.inside(*install).err
    ran = world.inside("schedule", "remove")
    assert "hint: git commit -m 'Start no more nights'" in ran.err, ran
    _type(ran.err, world.root)
    assert world.git("ls-tree", "-r", "--name-only", "HEAD", ".github") == ""


def test_a_config_folder_that_was_changed_leaves_no_script_in_the_one_before(
    world: World, bin_: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = machines.crontab(bin_)
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    script = _script()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(world.folder / "config"))
    assert world.inside("schedule", "install", "--with", "cron").code == 0
    assert not script.exists()
    assert table.read_text().count(" /bin/sh ") == 1
    assert _script().exists()
