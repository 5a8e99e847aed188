"""Where relay.toml is read from: the base commit, never the branch under review; and the person's own file."""

import os
from pathlib import Path

import pytest

from relay.errors import Exit, RelayError
from relay.host import repository
from relay.record import catalog, config
from tests.world import World


def _world(tmp_path: Path, text: str | None = None) -> World:
    world = World(tmp_path)
    if text is not None:
        world.commit({"relay.toml": text})
    return world


def _load(world: World, base: str | None = None) -> tuple[config.Config, str, str]:
    return config.load(repository.discover(world.root), base)


def _personal(text: str) -> Path:
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "relay" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def _refused(world: World, base: str | None = None) -> RelayError:
    with pytest.raises(RelayError) as caught:
        _load(world, base)
    assert caught.value.exit_code is Exit.USAGE
    return caught.value


def test_without_a_file_the_checked_out_branch_is_the_base(tmp_path: Path) -> None:
    world = _world(tmp_path)
    world.git("switch", "-q", "-c", "topic/one")
    assert _load(world) == (config.Config(), "refs/heads/topic/one", world.git("rev-parse", "HEAD"))


def test_the_base_named_in_the_checkout_is_where_the_rest_is_read(tmp_path: Path) -> None:
    world = _world(tmp_path, 'base = "main"\n[checks]\na = "true"\n')
    main = world.git("rev-parse", "HEAD")
    world.git("switch", "-q", "-c", "topic")
    world.commit({"x": "1"})
    loaded, ref, commit = _load(world)
    assert (ref, commit, loaded.checks) == ("refs/heads/main", main, {"a": "true"})


def test_a_base_that_is_given_goes_first(tmp_path: Path) -> None:
    world = _world(tmp_path, 'base = "main"\n')
    first = world.git("rev-parse", "HEAD")
    world.git("branch", "develop")
    world.git("tag", "v1")
    world.git("update-ref", "refs/remotes/origin/far", first)
    assert [_load(world, base)[1:] for base in ("develop", "v1", "origin/far", "refs/heads/main", first[:12])] == [
        ("refs/heads/develop", first),
        ("refs/tags/v1", first),
        ("refs/remotes/origin/far", first),
        ("refs/heads/main", first),
        (first, first),
    ]


@pytest.mark.parametrize("change", ["new", "edited", "deleted"])
def test_a_config_that_is_not_committed_is_refused(tmp_path: Path, change: str) -> None:
    world = _world(tmp_path, None if change == "new" else "[checks]\na = 'true'\n")
    if change == "deleted":
        (world.root / "relay.toml").unlink()
    else:
        world.write({"relay.toml": "[checks]\na = 'false'\n"})
    error = _refused(world)
    assert "relay.toml" in error.message
    assert error.hint.startswith("commit it")


def test_a_config_that_is_committed_elsewhere_but_not_in_the_base_is_refused(tmp_path: Path) -> None:
    world = _world(tmp_path)
    world.git("switch", "-q", "-c", "topic")
    world.commit({"relay.toml": 'base = "main"\n'})
    error = _refused(world)
    assert "is in the checkout but not in `main`" in error.message
    assert error.hint.startswith("commit it on `main`")


def test_line_ends_that_git_made_are_no_difference(tmp_path: Path) -> None:
    world = _world(tmp_path, "base = 'main'\n[checks]\na = 'true'\n")
    world.write({"relay.toml": "base = 'main'\r\n[checks]\r\na = 'true'\r\n"})
    assert _load(world)[0].checks == {"a": "true"}


def test_a_config_that_is_a_link_is_refused(tmp_path: Path) -> None:
    world = _world(tmp_path)
    (tmp_path / "outside.toml").write_text("")
    (world.root / "relay.toml").symlink_to(tmp_path / "outside.toml")
    assert "relay.toml" in _refused(world).message


def test_from_a_linked_worktree_and_a_bare_repository_it_is_the_same(tmp_path: Path) -> None:
    world = _world(tmp_path, "[checks]\na = 'true'\n")
    commit = world.git("rev-parse", "HEAD")
    world.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    world.git("clone", "-q", "--bare", str(world.root), str(tmp_path / "bare.git"))
    linked = config.load(repository.discover(tmp_path / "linked"))
    bare = config.load(repository.discover(tmp_path / "bare.git"))
    assert (linked[1:], bare[1:]) == (("refs/heads/other", commit), ("refs/heads/main", commit))
    assert linked[0] == bare[0] == _load(world)[0]


def test_a_detached_head_is_a_base_without_a_name(tmp_path: Path) -> None:
    world = _world(tmp_path)
    world.git("switch", "-q", "--detach")
    assert _load(world)[1:] == ("", world.git("rev-parse", "HEAD").strip())
    assert _load(world, "main")[1] == "refs/heads/main"


def test_a_repository_without_commits_is_said_to_have_none(tmp_path: Path) -> None:
    world = _world(tmp_path)
    world.git("init", "-q", str(tmp_path / "new"), folder=tmp_path)
    for base in (None, "main"):
        with pytest.raises(RelayError, match="no commits yet"):
            config.load(repository.discover(tmp_path / "new"), base)


def test_a_base_that_does_not_exist_is_said_with_the_nearest(tmp_path: Path) -> None:
    assert "base `mian` does not exist, did you mean `main`?" in _refused(_world(tmp_path), "mian").message


@pytest.mark.parametrize("base", ["-x", "a b", "main~1", "a..b", "@{-1}", "HEAD:x", "a\0b", "x.", "/"])
def test_what_is_no_name_of_a_branch_is_refused(tmp_path: Path, base: str) -> None:
    assert "cannot be the name of a branch" in _refused(_world(tmp_path), base).message


# --- the person's own file ----------------------------------------------------------------------------------------


def test_agents_may_stand_in_the_persons_own_file_and_the_repositorys_count_first(tmp_path: Path) -> None:
    _personal("[agents.a]\nbackend = 'human'\n[agents.b]\nbackend = 'human'\n")
    world = _world(tmp_path, "[agents.b]\nbackend = 'codex'\n")
    agents = _load(world)[0].agents
    assert {name: agent.backend for name, agent in agents.items()} == {"a": "human", "b": "codex"}


def test_a_persons_file_alone_can_line_up_the_default_phases(tmp_path: Path) -> None:
    _personal("[agents.implementer]\nbackend = 'claude-code'\n[agents.reviewer]\nbackend = 'codex'\n")
    world = _world(tmp_path)
    loaded, _, commit = _load(world)
    catalog.check(catalog.phases(repository.discover(world.root), commit, loaded), loaded.agents)


def test_a_persons_file_holds_nothing_else_and_is_named(tmp_path: Path) -> None:
    path = _personal("[checks]\na = 'true'\n")
    error = _refused(_world(tmp_path))
    assert str(path) in error.message
    assert "`checks` is not a known key" in error.message


def test_a_persons_file_may_be_a_link(tmp_path: Path) -> None:
    path = _personal("")
    path.unlink()
    (tmp_path / "dotfile").write_text("[agents.a]\nbackend = 'human'\n")
    path.symlink_to(tmp_path / "dotfile")
    assert set(config.personal()) == {"a"}
