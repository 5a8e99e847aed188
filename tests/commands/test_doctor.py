"""The doctor finds what would go wrong, says what to do about it, and touches nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from relay.host import jail
from relay.report import health
from tests.world import World


def _lines(world: World, *argv: str) -> list[tuple[str, str, str]]:
    """Return level, text and hint of each look, and check the exit code."""
    ran = world.inside(*argv, "doctor", "--json")
    events = [(event["level"], event["text"], event["hint"]) for event in ran.events]
    assert ran.code == (2 if any(level == "FAIL" for level, _, _ in events) else 0), ran
    return events


def _found(world: World, text: str) -> tuple[str, str]:
    [(level, _, hint)] = [look for look in _lines(world) if text in look[1]]
    return level, hint


def test_a_repository_that_is_ready_has_no_failure_and_is_not_touched(world: World) -> None:
    before = sorted(path.as_posix() for path in world.root.rglob("*"))
    ran = world.inside("doctor")
    assert ran.code == 0, ran
    assert [line for line in ran.out.splitlines() if not line.startswith(("ok    ", "warn  ", "      hint: "))] == []
    assert sorted(path.as_posix() for path in world.root.rglob("*")) == before
    assert "agent implementer: command" in ran.out
    assert "phases: implement (implementer), review (review-judge), acceptance (acceptance-judge)" in ran.out


def test_that_there_is_no_jail_is_said_plainly(world: World) -> None:
    assert health.JAIL.startswith("boundaries are watched, not enforced")
    assert _found(world, f"no jail: {health.JAIL}")[0] == "warn"
    world.save(jail={"mode": "required"})
    wanted = ("ok", "jailed by bubblewrap") if jail.choose("auto")[0].holds else ("FAIL", "no jail holds here")
    assert _found(world, wanted[1])[0] == wanted[0]


def test_outside_of_a_repository_it_fails_with_a_hint(world: World) -> None:
    ran = world.inside("doctor", folder=world.folder)
    assert ran.code == 2
    assert "is not in a git repository" in ran.out
    assert "1 thing to put right" in ran.err


def test_a_repository_without_commits_fails(world: World) -> None:
    world.git("init", "-q", str(world.folder / "empty"))
    assert ("FAIL", "the repository has no commits yet") in [
        look[:2] for look in _lines(world, "-C", str(world.folder / "empty"))
    ]


def test_without_relay_toml_it_names_init(world: World) -> None:
    world.git("rm", "-q", "relay.toml")
    world.git("commit", "-q", "-m", "none")
    assert _found(world, "there is no `relay.toml`") == ("FAIL", "relay init")


def test_a_config_that_is_not_committed_fails(world: World) -> None:
    (world.root / "relay.toml").write_text("# changed\n")
    level, hint = _found(world, "differs from the one in `main`")
    assert level == "FAIL"
    assert "git commit" in hint


def test_an_agent_that_is_not_there_fails_only_where_a_phase_needs_it(world: World) -> None:
    world.agents["spare"] = {"backend": "command", "command": ["no-such-spare"]}
    world.agents["review-judge"] = {"backend": "command", "command": ["no-such-judge"], "vendor": "south"}
    world.save()
    assert _found(world, "no-such-judge")[0] == "FAIL"
    assert _found(world, "no-such-spare")[0] == "warn"


@pytest.mark.parametrize("table", ["budget", "nightly"])
def test_a_bound_on_money_that_does_not_hold_an_agent_is_warned_of(world: World, table: str) -> None:
    world.agents["gpt"] = {"backend": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "nobody-knows-it"}
    world.shell("free", "true", phase="tidy", reply="exit")
    del world.phases["tidy"]
    world.save()
    assert [text for _, text, _ in _lines(world) if "`usd`" in text] == []
    world.save(**{table: {"usd": 5}})
    level, hint = _found(world, "agent review-judge: `usd` does not bound it")
    assert (level, "`minutes`" in hint) == ("warn", True)
    level, hint = _found(world, "nobody knows the price of `nobody-knows-it`")
    assert (level, "price = [IN, OUT] into [agents.gpt]" in hint) == ("warn", True)
    assert not [text for _, text, _ in _lines(world) if "agent free: `usd`" in text]


def test_a_line_up_that_does_not_fit_fails(world: World) -> None:
    world.phases["review"]["agent"] = "nobody"
    world.save()
    assert _found(world, "`review` wants `nobody`")[0] == "FAIL"


def test_a_git_that_is_too_old_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    program = world.folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho git version 2.38.1\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(program.parent))
    assert _found(world, "is older than 2.39")[0] == "FAIL"


def test_a_state_folder_that_is_a_file_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (world.folder / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(world.folder / "file"))
    assert _found(world, "worktrees go there")[0] == "FAIL"


def test_a_state_folder_that_a_reboot_empties_is_warned_of(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(world.folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("XDG_STATE_HOME", str(world.folder / "state"))
    assert _found(world, "is in a temporary folder")[0] == "warn"


def test_a_disk_that_is_nearly_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = shutil.disk_usage(tmp_path).free
    assert health.disk(tmp_path).level == ("ok" if free > health.LITTLE else "warn")
    monkeypatch.setattr(health, "LITTLE", free * 2)
    assert health.disk(tmp_path).level == "warn"
    monkeypatch.setattr(health, "TOO_LITTLE", free * 2)
    assert health.disk(tmp_path).level == "FAIL"


def _sparse(world: World) -> None:
    world.git("update-index", "--skip-worktree", "README.md")


def _submodule(world: World) -> None:
    world.commit({".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = ../x\n'})


def _hook(world: World) -> None:
    hooks = world.root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "pre-commit").write_text("#!/bin/sh\n")
    (hooks / "pre-commit").chmod(0o755)


def _shallow(world: World) -> None:
    world.git("clone", "-q", "--depth", "1", f"file://{world.root}", str(world.folder / "shallow"))
    world.root = world.folder / "shallow"


WARNINGS: list[tuple[Callable[[World], object], str]] = [
    (lambda w: w.write({"calc.py": "x\n", "new.txt": "y\n"}), "does not see `calc.py`, `new.txt`"),
    (lambda w: w.git("config", "core.hooksPath", ".husky/_"), "core.hooksPath is `.husky/_`"),
    (_hook, "hooks that do not run for Relay's commits: pre-commit"),
    (_submodule, "the repository has submodules"),
    (lambda w: w.commit({"data/.gitattributes": "*.bin filter=lfs -text\n"}), "the repository has LFS files"),
    (_sparse, "git does not look at `README.md`"),
    (_shallow, "the clone is shallow"),
    (lambda w: [w.git("config", "--unset", key) for key in ("user.name", "user.email")], "git knows no user.name"),
]


@pytest.mark.parametrize(("change", "text"), WARNINGS, ids=[text for _, text in WARNINGS])
def test_what_is_otherwise_in_a_worktree_is_warned_of(
    world: World, change: Callable[[World], object], text: str
) -> None:
    assert text not in world.inside("doctor").out
    change(world)
    level, hint = _found(world, text)
    assert level == "warn"
    assert hint


def test_settings_that_bring_the_parts_along_silence_the_warning(world: World) -> None:
    _submodule(world)
    world.save(worktree={"submodules": True})
    assert "submodules" not in world.inside("doctor").out


def test_hooks_that_are_committed_are_there_in_a_worktree(world: World) -> None:
    world.git("config", "core.hooksPath", "hooks")
    world.commit({"hooks/pre-push": "#!/bin/sh\n"})
    assert "core.hooksPath" not in world.inside("doctor").out


def test_an_environment_that_leads_back_into_the_checkout_is_warned_of(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = world.folder / "venv" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    monkeypatch.setenv("VIRTUAL_ENV", str(world.folder / "venv"))
    assert "editable install" not in world.inside("doctor").out
    (site / "calc.pth").write_text(f"{world.root}\n")
    assert _found(world, "has an editable install of this checkout")[0] == "warn"
    (site / "calc.pth").write_text("import sys\n")
    (site / "__editable___calc_finder.py").write_text(f"MAPPING = {{'calc': '{world.root}/calc.py'}}\n")
    (site / "__editable__.calc.pth").write_text("import __editable___calc_finder\n")
    assert _found(world, "has an editable install of this checkout")[0] == "warn"


def test_an_environment_that_would_be_linked_is_warned_of(world: World) -> None:
    world.write({".venv/pyvenv.cfg": "home = /usr/bin\n"})
    world.save(worktree={"link": [".venv"]})
    assert _found(world, "`.venv` in [worktree] is a Python environment")[0] == "warn"
