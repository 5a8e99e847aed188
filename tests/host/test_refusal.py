"""What a commit of Relay's never holds is named with the reason, and the work around it is kept."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from relay.errors import RelayError
from relay.host import git, refusal, snapshot
from relay.host.jail import Rung
from tests.host.leg import FILES, Leg, begin, program, why
from tests.world import SAFETY, World


@pytest.fixture
def project(tmp_path: Path) -> World:
    return World(tmp_path, FILES)


@pytest.fixture
def leg(project: World, rung: Rung) -> Leg:
    return begin(project, rung)


def test_an_embedded_repository_is_named_and_nothing_in_it_runs(leg: Leg) -> None:
    marker = leg.project.folder / "ran"
    inner = World(leg.project.folder / "inner", {"i.py": "i\n", ".gitattributes": "*.py filter=own\n"})
    shutil.copytree(inner.root, leg.top / "vendor/inner")
    program(leg.top / "vendor/inner/tool", marker)
    for key in ("filter.own.clean", "filter.own.process", "core.fsmonitor"):
        leg.project.git("-C", str(leg.top / "vendor/inner"), "config", key, "./tool")
    (leg.top / "vendor/inner/i.py").write_text("changed\n")
    leg.write("vendor/plain.py")
    made = leg.take()
    assert why(made) == {"vendor/inner/": "an embedded repository"}
    assert leg.changed(made) == {"vendor/plain.py"}
    assert not marker.exists()
    leg.git("-c", "core.fsmonitor=false", "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor/inner")
    assert leg.take().tree == made.tree
    assert not marker.exists()


def _with_submodule(project: World, rung: Rung) -> Leg:
    """Give the project a submodule at vendor/lib, and return a leg whose set-up did not fill it."""
    library = World(project.folder / "library", {"lib.txt": "lib\n"})
    project.git("config", "--global", "protocol.file.allow", "always")
    project.git("submodule", "--quiet", "add", str(library.root), "vendor/lib")
    project.git("commit", "-qm", "a submodule")
    return begin(project, rung)


@pytest.mark.parametrize("filled", [False, True])
def test_what_is_left_in_the_folder_of_a_submodule_is_named_since_no_commit_holds_it(
    project: World,
    rung: Rung,
    filled: bool,  # noqa: FBT001 - a case
) -> None:
    leg = _with_submodule(project, rung)
    if filled:
        leg.git("submodule", "--quiet", "update", "--init")
        leg.before = snapshot.baseline(leg.repo, leg.lease, leg.rung)
    leg.write("vendor/lib/__pycache__/x.pyc")
    assert why(leg.take()) == {}
    leg.write("vendor/lib/new.py")
    assert why(leg.take()) == {"vendor/lib": "changed inside the submodule"}


def test_a_submodule_that_was_moved_on_is_named(project: World, rung: Rung) -> None:
    leg = _with_submodule(project, rung)
    leg.git("submodule", "--quiet", "update", "--init")
    leg.before = snapshot.baseline(leg.repo, leg.lease, leg.rung)
    leg.write("new.py")
    assert leg.take().refused == ()
    leg.write("vendor/lib/lib.txt", "changed\n")
    leg.project.git(
        "-C", str(leg.top / "vendor/lib"), "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qam", "x"
    )
    made = leg.take()
    assert why(made) == {"vendor/lib": "a submodule at another commit"}
    assert leg.changed(made) == {"new.py"}


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", "sub/.gitignore", "new/.gitattributes"])
def test_a_fifo_where_git_reads_hangs_nothing_and_the_rest_is_kept(leg: Leg, name: str) -> None:
    leg.write("sub/new.py")
    leg.write("new/new.py")
    (leg.top / name).unlink(missing_ok=True)
    os.mkfifo(leg.top / name)
    made = leg.take()
    assert why(made) == {name: "a FIFO, removed because git would wait on it for ever"}
    assert leg.changed(made) >= {"sub/new.py", "new/new.py"}


def test_a_fifo_among_gits_own_files_is_an_error_that_names_it(leg: Leg) -> None:
    place = leg.repo.common / "info/exclude"
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    with pytest.raises(RelayError, match=r"git would hang on `.*info/exclude`"):
        leg.take()


def test_special_files_are_named_and_stay_out(leg: Leg, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(leg.top)
    os.mkfifo("pipe")
    (leg.top / "a.py").unlink()
    os.mkfifo("a.py")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sub/socket")
    leg.write("new.py")
    made = leg.take()
    assert why(made) == {"pipe": "a FIFO", "a.py": "a FIFO", "sub/socket": "a socket"}
    assert leg.changed(made) == {"new.py"}


def test_a_link_that_leads_out_is_named(leg: Leg) -> None:
    for name, target in {
        "absolute": "/etc/passwd",
        "inside-absolute": str(leg.top / "a.py"),
        "up": "../x",
        "sub/up": "../../x",
        "loop": "loop",
        "dangling": "sub/none",
        "sub/fine": "../docs/c.md",
        "twice": "sub/up/y",
    }.items():
        (leg.top / name).symlink_to(target)
    (leg.top / "a.py").unlink()
    (leg.top / "a.py").symlink_to("/etc/passwd")
    made = leg.take()
    out = {"absolute", "inside-absolute", "up", "sub/up", "twice", "a.py"}
    assert why(made) == dict.fromkeys(out, "a link that leads out of the tree")
    assert leg.changed(made) == {"loop", "dangling", "sub/fine"}


def test_a_folder_that_became_a_link_does_not_bring_in_what_is_outside(leg: Leg) -> None:
    outside = leg.project.folder / "outside"
    outside.mkdir()
    (outside / "b.py").write_text("secret\n")
    shutil.rmtree(leg.top / "sub")
    (leg.top / "sub").symlink_to(outside)
    made = leg.take()
    assert why(made) == {"sub": "a link that leads out of the tree"}
    assert leg.changed(made) == {"sub/b.py"}
    assert git.blob(leg.repo, made.commit, "sub/b.py") is None


def test_a_file_becomes_a_folder_and_a_folder_a_file(leg: Leg) -> None:
    (leg.top / "a.py").unlink()
    leg.write("a.py/inner.py")
    shutil.rmtree(leg.top / "sub")
    leg.write("sub")
    made = leg.take()
    assert made.refused == ()
    assert git.paths(leg.repo, made.commit) == [".gitignore", "a.py/inner.py", "docs/c.md", "sub"]


def test_a_file_that_is_too_large_is_named(leg: Leg) -> None:
    with leg.write("big.bin").open("wb") as file:
        file.truncate(refusal.LARGEST + 1)
    with leg.write("fits.bin").open("wb") as file:
        file.truncate(1 << 20)
    made = leg.take()
    assert why(made) == {"big.bin": "50 MB, more than 50 MB"}
    assert leg.changed(made) == {"fits.bin"}


def test_new_secrets_are_named_and_tracked_ones_are_the_projects_business(project: World, rung: Rung) -> None:
    project.commit({".env.ci": "A=1\n"})
    leg = begin(project, rung)
    leg.write(".env.ci", "A=2\n")
    for name in (".env", "sub/.env.local", "server.PEM", "keys/id_rsa", ".netrc", ".env.example", "environment.py"):
        leg.write(name)
    made = leg.take()
    secret = {".env", "sub/.env.local", "server.PEM", "keys/id_rsa", ".netrc"}
    assert why(made) == dict.fromkeys(secret, "looks like a secret")
    assert leg.changed(made) == {".env.ci", ".env.example", "environment.py"}


def test_installed_packages_that_are_not_ignored_are_named_once(project: World, rung: Rung) -> None:
    project.commit({"web/node_modules/vendored/x.js": "x\n"})
    leg = begin(project, rung)
    for name in (
        "node_modules/x/index.js",
        "node_modules/y/index.js",
        "api/.venv/lib/z.py",
        "web/node_modules/more.js",
    ):
        leg.write(name)
    made = leg.take()
    assert why(made) == dict.fromkeys(("node_modules", "api/.venv"), "installed or cached, and not ignored")
    assert leg.changed(made) == {"web/node_modules/more.js"}


def test_source_that_is_ignored_is_named_and_what_was_ignored_before_is_not(project: World, rung: Rung) -> None:
    project.commit({".gitignore": "generated/\n*.log\n__pycache__/\n"})
    leg = begin(project, rung)
    leg.write("generated/old.py")
    leg.before = snapshot.baseline(leg.repo, leg.lease, leg.rung)
    leg.write(".gitignore", "generated/\n*.log\n__pycache__/\nsecretly/\nhidden.py\n*.dat\nempty/\n")
    for name in (
        "secretly/deep/x.py",
        "hidden.py",
        "run.log",
        "sub/__pycache__/b.pyc",
        "x.dat",
        "empty/y.bin",
        "seen.py",
    ):
        leg.write(name)
    made = leg.take()
    assert why(made) == dict.fromkeys(("secretly/", "hidden.py"), "ignored, but looks like source")
    assert leg.changed(made) == {".gitignore", "seen.py"}


def test_conflict_markers_of_an_unfinished_merge_are_named(leg: Leg) -> None:
    leg.write("a.py", "a = 2\n")
    leg.git("commit", "-qam", "mine")
    leg.git("checkout", "-q", "--detach", leg.start)
    leg.write("a.py", "a = 3\n")
    leg.git("commit", "-qam", "other")
    done = subprocess.run(
        ["git", "merge", "-q", "HEAD@{2}"], cwd=leg.top, check=False, timeout=SAFETY, capture_output=True
    )
    assert done.returncode == 1
    leg.write("new.py")
    made = leg.take()
    assert why(made) == {"a.py": "holds conflict markers of an unfinished merge"}
    assert leg.changed(made) == {"new.py"}


def test_text_about_conflict_markers_is_no_conflict(leg: Leg) -> None:
    leg.write("docs/merging.md", "<<<<<<< ours\n=======\n>>>>>>> theirs\n")
    made = leg.take()
    assert made.refused == ()
    assert leg.changed(made) == {"docs/merging.md"}


def test_a_file_that_needs_a_required_filter_is_named(project: World, rung: Rung) -> None:
    project.git("config", "--global", "filter.lfs.clean", "git-lfs clean -- %f")
    project.git("config", "--global", "filter.lfs.required", "true")
    project.git("config", "--global", "filter.tidy.clean", "tidy")
    project.commit({".gitattributes": "*.psd filter=lfs\n*.nb filter=tidy\n"})
    leg = begin(project, rung)
    leg.write("art.psd")
    leg.write("notes.nb")
    made = leg.take()
    assert why(made) == {"art.psd": "needs the filter `lfs`, which Relay does not run"}
    assert leg.changed(made) == {"notes.nb"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_what_cannot_be_read_is_named_and_not_taken_for_deleted(leg: Leg) -> None:
    leg.write("new.py")
    leg.write("closed.py").chmod(0)
    (leg.top / "sub").chmod(0)
    made = leg.take()
    (leg.top / "sub").chmod(0o700)
    assert why(made) == dict.fromkeys(("closed.py", "sub/", "sub/b.py"), "cannot be read")
    assert leg.changed(made) == {"new.py"}
