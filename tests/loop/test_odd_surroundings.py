"""Names and surroundings that lead others astray: files with odd names, who writes, and what the environment says."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.loop.faults import through, untouched
from tests.world import BROKEN, FIXED, SAFETY, World

ODD = [
    "new\nline.txt",
    "'single' \"double\".txt",
    "-leading-dash",
    os.fsdecode(b"latin-\xe9.txt"),
    ":(top)magic",
    ":!not",
    "*glob?[x].txt",
    " blank ",
    "tab\there",
    "back\\slash",
    "folder \n/-x",
    "\U0001f3c3.txt",
]
"""Names that break what takes them for lines, options, patterns or UTF-8."""


def test_files_with_odd_names_are_carried(world: World) -> None:
    text = f"import os\nfor name in {[os.fsencode(name) for name in ODD]!r}:\n"
    text += "    os.makedirs(os.path.dirname(name) or b'.', exist_ok=True)\n    open(name, 'wb').write(name)\n"
    world.python(
        "implementer", f"{text}write({{'calc.py': {FIXED!r}}})\nreply(status='done')", phase="implement", vendor="north"
    )
    with untouched(world):
        ran = world.relay("run", world.spec())
        through(ran)
    through(world.relay("approve"))
    assert (world.root / "calc.py").read_text() == FIXED
    for name in ODD:
        assert (world.root / name).read_bytes() == os.fsencode(name)
    assert world.git("status", "--porcelain") == ""


def test_files_with_odd_names_are_changed_and_removed_too(world: World) -> None:
    world.write(dict.fromkeys(ODD, "before\n"))
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "odd names")
    text = f"import os\nnames = {[os.fsencode(name) for name in ODD]!r}\nfor name in names[::2]:\n    os.unlink(name)\n"
    text += "for name in names[1::2]:\n    open(name, 'wb').write(b'after')\n"
    world.python(
        "implementer", f"{text}write({{'calc.py': {FIXED!r}}})\nreply(status='done')", phase="implement", vendor="north"
    )
    with untouched(world):
        through(world.relay("run", world.spec()))
    through(world.relay("approve"))
    assert [name for name in ODD if os.path.lexists(world.root / name)] == ODD[1::2]
    assert {(world.root / name).read_bytes() for name in ODD[1::2]} == {b"after"}


# --- who writes ---------------------------------------------------------------------------------------------------


def test_without_a_user_name_the_commits_are_relays_and_the_settings_stay(world: World) -> None:
    world.git("config", "--unset", "user.name")
    world.git("config", "--unset", "user.email")
    with untouched(world):
        through(world.relay("run", world.spec()))
    through(world.relay("approve"))
    assert (
        world.git("log", "-1", "--format=%an <%ae> %cn <%ce>", "main")
        == "relay <relay@localhost> relay <relay@localhost>"
    )
    config = subprocess.run(["git", "config", "user.name"], cwd=world.root, check=False, timeout=SAFETY)
    assert config.returncode == 1


def test_commits_of_legs_are_never_signed_so_that_no_run_waits_for_a_key(world: World) -> None:
    asked = world.folder / "asked"
    world.save(ship={"method": "fast-forward"})  # makes no commit of its own, so no key is tried
    world.shell("signer", f"touch {asked}; exec sleep 600", phase="unused")
    del world.phases["unused"]
    for name, value in (
        ("commit.gpgsign", "true"),
        ("tag.gpgsign", "true"),
        ("gpg.program", str(world.folder / "agents" / "signer.sh")),
    ):
        world.git("config", name, value)
    through(world.relay("run", world.spec()))
    assert not asked.exists()
    assert "gpgsig" not in world.git("cat-file", "commit", f"relay/{world.only_run()}")


@pytest.mark.parametrize("inside", [True, False])
def test_inherited_git_variables_lead_nowhere_else(world: World, tmp_path: Path, inside: bool) -> None:  # noqa: FBT001
    """As in a hook, or a shell that works on another repository: that one is neither read nor changed."""
    other = World.simple(tmp_path / "other")
    index = tmp_path / "index"
    index.write_bytes((other.root / ".git" / "index").read_bytes())
    inherited = {
        "GIT_DIR": str(other.root / ".git"),
        "GIT_COMMON_DIR": str(other.root / ".git"),
        "GIT_WORK_TREE": str(other.root),
        "GIT_INDEX_FILE": str(index),
        "GIT_OBJECT_DIRECTORY": str(other.root / ".git" / "objects"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_NAMESPACE": "elsewhere",
        "GIT_PREFIX": "sub/",
    }
    world.shell(
        "implementer",
        "git add calc.py; printf 'def add(a, b):\\n    return a + b\\n' > calc.py",
        phase="implement",
        reply="exit",
    )
    world.save()
    folder = world.root if inside else world.folder
    with untouched(other), untouched(world):
        through(world.relay("-C", world.root, "run", world.spec(), folder=folder, env=inherited))
    through(world.relay("-C", world.root, "approve", folder=folder, env=inherited))
    assert world.show("main", "calc.py") == FIXED
    assert other.show("main", "calc.py") == BROKEN
    assert not other.runs.exists()
    assert index.read_bytes() == (other.root / ".git" / "index").read_bytes()
