"""What steers git is kept and put back: nothing of the person's is moved away, overwritten unkept, or made to crash."""

import os
from pathlib import Path

import pytest

from relay.host.tripwire import steering
from tests.host.desk import Desk, hook, make


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return make(tmp_path)


def _plain_files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


# --- links --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["hooks", "info", "hooks/pre-commit.d"])
@pytest.mark.parametrize("to", ["absolute", "relative"])
def test_a_folder_that_became_a_link_is_a_folder_again_and_nothing_behind_it_is_touched(
    desk: Desk, folder: str, to: str
) -> None:
    private = desk.project.folder / "private"
    for name in ("id_rsa", "pre-push", "attributes", "one", "pre-commit.d/one"):
        hook(private / name, "the person's\n", 0o600)
    (desk.common / "info").mkdir(exist_ok=True)
    hook(desk.common / "info/attributes", "* text\n", 0o644)
    desk.keep()
    before = _plain_files(desk.common / "hooks")
    place = desk.common / folder
    place.rename(desk.project.folder / "gone")
    target = os.path.relpath(private, place.parent) if to == "relative" else str(private)
    place.symlink_to(target)
    done, left = desk.put_back()
    assert folder in done
    assert left == ()
    assert set(_plain_files(private).values()) == {"the person's\n"}
    assert len(_plain_files(private)) == 5
    assert not any(path.is_symlink() for path in (place, *place.parents))
    assert (_plain_files(desk.common / "hooks"), (desk.common / "info/attributes").read_text()) == (before, "* text\n")
    assert os.access(desk.common / "hooks/pre-push", os.X_OK)
    assert [text for text in _plain_files(desk.evidence).values() if text == f"a link to {target}\n"]


def test_hooks_that_were_elsewhere_before_are_mended_there_and_none_is_removed(desk: Desk) -> None:
    theirs = desk.project.root / "githooks"
    (desk.common / "hooks").rename(theirs)
    (desk.common / "hooks").symlink_to("../githooks")
    desk.keep()
    hook(theirs / "pre-push", "evil\n")
    hook(theirs / "post-merge", "evil too\n")
    assert desk.put_back() == (("hooks/post-merge", "hooks/pre-push"), ())
    assert (desk.common / "hooks").readlink() == Path("../githooks")
    assert (theirs / "pre-push").read_text() == "mine\n"
    assert (theirs / "post-merge").read_text() == "evil too\n"
    assert not (theirs / "post-merge").stat().st_mode & 0o111
    assert _plain_files(desk.evidence) == {"hooks/pre-push": "evil\n", "hooks/post-merge": "evil too\n"}


def test_a_link_to_hooks_that_leads_elsewhere_now_is_left_and_that_is_said(desk: Desk) -> None:
    (desk.common / "hooks").rename(desk.project.root / "githooks")
    (desk.common / "hooks").symlink_to("../githooks")
    desk.keep()
    private = hook(desk.project.folder / "private/pre-push", "the person's\n")
    (desk.common / "hooks").unlink()
    (desk.common / "hooks").symlink_to(private.parent)
    assert desk.put_back() == ((), ("hooks",))
    assert private.read_text() == "the person's\n"


def test_a_hook_that_is_a_link_comes_back_as_that_link(desk: Desk) -> None:
    script = hook(desk.project.root / "script")
    (desk.common / "hooks/pre-commit").symlink_to("../../script")
    desk.keep()
    (desk.common / "hooks/pre-commit").unlink()
    hook(desk.common / "hooks/pre-commit", "evil\n")
    assert desk.put_back() == (("hooks/pre-commit",), ())
    assert (desk.common / "hooks/pre-commit").readlink() == Path("../../script")
    script.write_text("changed\n")
    assert desk.put_back() == ((), ("hooks/pre-commit",))
    assert script.read_text() == "changed\n"


def test_a_hook_that_became_a_link_is_a_file_again_and_its_target_stays(desk: Desk) -> None:
    desk.keep()
    private = hook(desk.project.folder / "private", "the person's\n")
    (desk.common / "hooks/pre-push").unlink()
    (desk.common / "hooks/pre-push").symlink_to(private)
    assert desk.put_back() == (("hooks/pre-push",), ())
    assert not (desk.common / "hooks/pre-push").is_symlink()
    assert private.read_text() == "the person's\n"
    assert (desk.evidence / "hooks/pre-push").read_text() == f"a link to {private}\n"


# --- what stands in a folder of hooks -----------------------------------------------------------------------------


def test_hooks_in_folders_are_kept_and_what_is_no_file_hinders_nothing(desk: Desk) -> None:
    os.mkfifo(desk.common / "hooks/pipe")
    (desk.common / "hooks/loop").symlink_to("loop")
    desk.keep()
    assert desk.put_back() == ((), ())
    hook(desk.common / "hooks/pre-commit.d/one", "evil\n")
    hook(desk.common / "hooks/pre-commit.d/two", "evil\n")
    assert desk.put_back() == (("hooks/pre-commit.d/one", "hooks/pre-commit.d/two"), ())
    assert _plain_files(desk.common / "hooks/pre-commit.d") == {"one": "mine\n"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_hook_that_cannot_be_read_is_not_kept_and_that_is_said(desk: Desk) -> None:
    unread = hook(desk.common / "hooks/pre-rebase", mode=0)
    desk.keep()
    unread.unlink()
    hook(unread, "evil\n")
    assert desk.put_back() == ((), ("hooks/pre-rebase",))


def test_a_hook_that_was_not_kept_is_left_and_that_is_said(desk: Desk) -> None:
    os.mkfifo(desk.common / "hooks/pipe")
    desk.keep()
    (desk.common / "hooks/pipe").unlink()
    assert desk.put_back() == ((), ("hooks/pipe",))


def test_too_much_to_keep_is_not_kept(desk: Desk) -> None:
    large = hook(desk.common / "hooks/large")
    with large.open("r+b") as file:
        file.truncate(17 << 20)
    desk.keep()
    hook(large, "evil\n")
    assert desk.put_back() == ((), ("hooks/large",))


def test_a_folder_a_pipe_or_a_file_that_took_a_place_goes_into_evidence(desk: Desk) -> None:
    desk.keep()
    (desk.common / "hooks").rename(desk.common / "moved")
    os.mkfifo(desk.common / "hooks")
    assert desk.put_back() == (("hooks", "hooks/pre-commit.d/one", "hooks/pre-push"), ())
    assert _plain_files(desk.common / "hooks") == {"pre-push": "mine\n", "pre-commit.d/one": "mine\n"}
    (desk.common / "hooks/pre-push").unlink()
    hook(desk.common / "hooks/pre-push/inner", "evil\n")
    assert desk.put_back() == (("hooks/pre-push",), ())
    assert (desk.evidence / "hooks/pre-push/inner").read_text() == "evil\n"


def test_copies_that_somebody_removed_or_forged_are_not_used(desk: Desk) -> None:
    desk.keep()
    hook(desk.common / "hooks/pre-push", "evil\n")
    (desk.record / "guarded/hooks/pre-push").write_text("forged\n")
    (desk.record / "guarded/hooks/post-merge").symlink_to("/bin/true")
    hook(desk.common / "hooks/post-merge", "evil\n")
    assert desk.put_back() == (("hooks/post-merge",), ("hooks/pre-push",))
    assert not os.path.lexists(desk.common / "hooks/post-merge")


def test_what_nobody_looked_at_before_is_not_taken_for_new(desk: Desk) -> None:
    desk.keep()
    theirs = hook(desk.project.folder / "theirs/pre-push")
    (Path.home() / ".gitconfig").write_text(f"[core]\n\thooksPath = {theirs.parent}\n")
    desk.before |= {name: "?" for name in desk.before if name.startswith("home/")}
    assert desk.put_back() == ((), ())
    assert os.access(theirs, os.X_OK)


# --- hooks elsewhere ----------------------------------------------------------------------------------------------


def test_hooks_below_a_relative_path_are_put_back_in_place(desk: Desk) -> None:
    desk.config("core.hooksPath", ".husky/_")
    hooks = desk.project.root / ".husky/_"
    hook(hooks / "pre-commit")
    hook(hooks / "pre-push")
    desk.keep()
    hook(hooks / "pre-commit", "evil\n")
    (hooks / "pre-push").unlink()
    hook(hooks / "post-merge", "evil\n")
    (hooks / "post-commit").symlink_to("/bin/true")
    names = ("post-commit", "post-merge", "pre-commit", "pre-push")
    assert desk.put_back() == (tuple(f"hooks path/.husky/_/{name}" for name in names), ())
    assert {name: (hooks / name).read_text() for name in names[1:]} == {
        "post-merge": "evil\n",
        "pre-commit": "mine\n",
        "pre-push": "mine\n",
    }
    assert not os.path.lexists(hooks / "post-commit")
    assert not (hooks / "post-merge").stat().st_mode & 0o111
    assert (hooks / "pre-commit").stat().st_mode & 0o111
    assert (desk.evidence / "hooks path/.husky/_/pre-commit").read_text() == "evil\n"


def test_a_link_on_the_way_to_them_goes_and_they_come_back(desk: Desk) -> None:
    desk.config("core.hooksPath", ".husky/_")
    hook(desk.project.root / ".husky/_/pre-commit")
    desk.keep()
    private = hook(desk.project.folder / "private/_/pre-commit", "the person's\n").parents[1]
    (desk.project.root / ".husky").rename(desk.project.folder / "gone")
    (desk.project.root / ".husky").symlink_to(private)
    desk.config("core.hooksPath", "/elsewhere")
    done, left = desk.put_back()
    assert done == ("config", "hooks path/.husky/_", "hooks path/.husky/_/pre-commit")
    assert left == ()
    assert (desk.project.root / ".husky/_/pre-commit").read_text() == "mine\n"
    assert (private / "_/pre-commit").read_text() == "the person's\n"


def test_settings_and_hooks_of_submodules_and_worktrees_are_put_back_too(desk: Desk) -> None:
    module = desk.common / "modules/libs/x"
    hook(module / "HEAD")
    hook(module / "config", "[core]\n\tbare = false\n", 0o644)
    desk.project.git("worktree", "add", "-q", "--detach", str(desk.project.folder / "side"))
    desk.keep()
    desk.config("--file", str(module / "config"), "core.fsmonitor", "./evil")
    desk.config("--file", str(desk.common / "worktrees/side/config.worktree"), "core.fsmonitor", "./evil")
    hook(module / "hooks/post-checkout", "evil\n")
    hook(desk.common / "modules/new/HEAD")
    hook(desk.common / "modules/new/config", "[core]\n\tfsmonitor = x\n")
    names = ("worktrees/side/config.worktree", "modules/libs/x/config", "modules/libs/x/hooks/post-checkout")
    assert desk.put_back() == (names, ())
    assert (module / "config").read_text() == "[core]\n\tbare = false\n"
    assert not (module / "hooks/post-checkout").exists()
    assert not (desk.common / "worktrees/side/config.worktree").exists()
    assert (desk.common / "modules/new/config").exists()


def test_names_are_what_a_fingerprint_says(desk: Desk) -> None:
    desk.keep()
    folders = (*steering.settings(desk.repo), *steering.hooks(desk.repo), *steering.named_hooks(desk.repo))
    assert {folder.mark for folder in folders} <= desk.before.keys()
