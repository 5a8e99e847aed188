"""What a leg sees of a repository."""

import socket
import subprocess
from pathlib import Path

import pytest

from relay.host import jail, repository, worktree
from relay.host.jail import tools
from relay.host.jail.mounts import Access, Mounts
from tests.world import World

TOKEN = "hunter2"  # noqa: S105  what must not be seen


def seen(world: World) -> Mounts:
    repo = repository.discover(world.root)
    lease = worktree.lease(repo, world.folder / "trees/01", world.git("rev-parse", "HEAD"), "run=x")
    return jail.around(repo, lease, Access.READ, home=world.folder)


def test_of_the_configuration_only_what_git_needs_is_shown(world: World) -> None:
    for name, value in {
        "remote.origin.url": f"https://{TOKEN}@example.org/x",
        "http.https://example.org/.extraheader": f"AUTHORIZATION: basic {TOKEN}",
        f"core.{TOKEN}.x": "y",
        "core.sshCommand": f"ssh -o Token={TOKEN}",
        "core.fsmonitor": "true",
        "core.ignoreCase": "false",
        "extensions.worktreeConfig": "true",
        "include.path": "/elsewhere",
    }.items():
        world.git("config", name, value)
    mounts = seen(world)
    shown = mounts.replaced[world.root / ".git/config"]
    assert TOKEN.encode() not in shown
    listed = subprocess.run(["git", "config", "-f", "-", "-l"], input=shown, capture_output=True, check=True).stdout
    names = {line.partition("=")[0] for line in listed.decode().splitlines()}
    assert {"core.bare", "core.ignorecase", "extensions.worktreeconfig"} <= names
    assert {name.partition(".")[0] for name in names} == {"core", "extensions"}
    assert not {"core.fsmonitor", "core.sshcommand"} & names


@pytest.mark.parametrize("value", ['a"b\\c', "a\nb\tc", "  spaces  ", "# no ; comment", ""])
def test_a_setting_is_shown_as_it_is(world: World, value: str) -> None:
    world.git("config", "core.attributesFile", value)
    shown = seen(world).replaced[world.root / ".git/config"]
    read = subprocess.run(
        ["git", "config", "-f", "-", "-z", "core.attributesFile"], input=shown, capture_output=True, check=True
    )
    assert read.stdout.decode() == f"{value}\0"


def test_configurations_of_worktrees_and_submodules_are_cleaned_too(world: World) -> None:
    common = world.root / ".git"
    world.git("worktree", "add", "-q", str(world.folder / "w"))
    places = [
        "config.worktree",
        "worktrees/w/config.worktree",
        "modules/lib/deep/config",
        "modules/lib/deep/modules/x/config",
    ]
    for place in places:
        path = common / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'[remote "o"]\n\turl = https://{TOKEN}@x\n', encoding="utf-8")
        if "modules" in place:
            (path.parent / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    replaced = seen(world).replaced
    assert {path for path in replaced if path != common / "config"} == {common / place for place in places}
    assert not any(TOKEN.encode() in shown for shown in replaced.values())


def test_of_a_repository_only_what_git_needs_is_shown(world: World) -> None:
    common = world.root / ".git"
    (common / "extra").write_text(TOKEN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(common / "daemon.ipc"))
        shown = {path.name for path in seen(world).readable if path.is_relative_to(common)}
    assert shown >= {"HEAD", "objects", "refs"}
    assert not shown & {"extra", "daemon.ipc", "relay", "config", ".git", "hooks"}


def test_a_repository_put_together_from_links_is_shown_whole(world: World, tmp_path: Path) -> None:
    common = world.root / ".git"
    (common / "objects").rename(tmp_path / "objects")
    (common / "objects").symlink_to(tmp_path / "objects")
    assert common in seen(world).readable


def test_objects_borrowed_from_another_repository_can_be_read(world: World, tmp_path: Path) -> None:
    world.git("clone", "-q", "--shared", str(world.root), str(tmp_path / "clone"))
    clone = repository.discover(tmp_path / "clone")
    lease = worktree.lease(clone, tmp_path / "t/01", world.git("rev-parse", "HEAD"), "run=x")
    assert world.root / ".git/objects" in jail.around(clone, lease, Access.READ, home=tmp_path).readable


def test_the_ledger_is_masked_where_there_is_one(world: World) -> None:
    assert seen(world).masked == ()
    world.git("worktree", "prune")
    (world.root / ".git/relay").mkdir()
    repo = repository.discover(world.root)
    lease = worktree.lease(repo, world.folder / "trees/02", "HEAD", "run=x")
    assert jail.around(repo, lease, Access.WRITE, home=world.folder).masked == (world.root / ".git/relay",)


# --- tools --------------------------------------------------------------------------------------------------------


def shown(home: Path, *entries: str) -> set[str]:
    """Return what is shown of a home for a PATH of folders in it, by their names there."""
    found = tools.readable(":".join(f"{home}/{entry}" for entry in entries), home)
    return {str(path.relative_to(home)) for path in found if path.is_relative_to(home)}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with tools and secrets."""
    for name in (
        *(".pyenv/shims", ".pyenv/versions/3.12/bin", ".cargo/bin", ".rustup/toolchains", ".local/bin", "bin"),
        *(".local/share/uv/tools", ".local/share/keyrings", ".ssh", ".aws", ".config/tool/bin", "work/venv/bin"),
        *(".nvm/versions/node/v22/bin", ".mozilla"),
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".cargo/credentials.toml").write_text(TOKEN, encoding="utf-8")
    (tmp_path / "work/venv/pyvenv.cfg").write_text("", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("entry", "parts"),
    [
        (".pyenv/shims", {".pyenv"}),
        (".cargo/bin", {".cargo/bin", ".rustup/toolchains"}),
        (".local/bin", {".local/bin", ".local/share/uv/tools"}),
        (".nvm/versions/node/v22/bin", {".nvm/versions"}),
        ("work/venv/bin", {"work/venv"}),
        ("bin", {"bin"}),
        (".ssh", set()),
        (".aws", set()),
        (".config/tool/bin", set()),
        (".mozilla", set()),
        (".local/share/keyrings", set()),
        ("", set()),
        ("..", set()),
        ("absent", set()),
    ],
)
def test_of_a_home_only_tools_on_path_are_shown(home: Path, entry: str, parts: set[str]) -> None:
    assert shown(home, entry) == parts


def test_nothing_is_shown_that_has_the_home_in_it(home: Path) -> None:
    assert not [
        path for path in tools.readable(f"/:{home}/..:{home}:{home.parent.parent}", home) if home.is_relative_to(path)
    ]


def test_nothing_is_shown_twice_nor_a_part_of_what_is_shown(home: Path) -> None:
    assert shown(home, "work/venv/bin", "work/venv/bin", ".pyenv/shims", ".pyenv/versions/3.12/bin") == {
        "work/venv",
        ".pyenv",
    }


def test_a_link_to_a_secret_place_is_not_followed(home: Path) -> None:
    (home / "keys").symlink_to(home / ".ssh")
    assert shown(home, "keys") == set()


def test_tools_learn_where_their_parts_are(home: Path) -> None:
    assert tools.variables("/usr/bin", home) == {
        "PYENV_ROOT": f"{home}/.pyenv",
        "RUSTUP_HOME": f"{home}/.rustup",
        "NVM_DIR": f"{home}/.nvm",
    }


def test_tools_of_another_home_are_shown_when_the_path_leads_there(home: Path) -> None:
    mine = home / "work"
    found = tools.readable(f"{home}/.pyenv/shims:{home}/.cargo/bin", mine)
    assert {str(path.relative_to(home)) for path in found if path.is_relative_to(home)} == {
        ".pyenv",
        ".cargo/bin",
        ".rustup/toolchains",
    }
    assert tools.variables(f"{home}/.pyenv/shims", mine)["PYENV_ROOT"] == f"{home}/.pyenv"
