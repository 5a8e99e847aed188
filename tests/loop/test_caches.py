"""What set-up fetched is there for the next worktree, and nobody but set-up of the base decides what that is."""

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from relay import caches
from relay.host import repository
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from tests.loop.faults import refused, through
from tests.loop.index import Index, offered
from tests.loop.jailed import agents
from tests.world import World

PYTHON = f'{sys.executable} -m pip install -q --target "$TMPDIR/deps" -i {{url}}/simple/ --trusted-host 127.0.0.1 tiny'
UV = f'uv pip install -q --target "$TMPDIR/deps" --python {sys.executable} --default-index {{url}}/simple/ tiny'
NPM = 'npm install --silent --no-audit --no-update-notifier --prefix "$TMPDIR" --registry {url}/ tiny@1.0.0'
CARGO = "CARGO_REGISTRIES_HERE_INDEX=sparse+{url}/index/ cargo fetch -q"
CRATE = """[package]
name = "app"
version = "1.0.0"
edition = "2021"

[dependencies]
tiny = { version = "1", registry = "here" }
"""
MARK = 'mkdir -p "$PIP_CACHE_DIR" && { cat "$PIP_CACHE_DIR/mark" || echo unmarked; }'


def _ledger(world: World) -> Ledger:
    return ledgers.at(repository.discover(world.root))


def _shared(world: World) -> Path:
    return caches.place(_ledger(world))


def _left(world: World) -> list[Path]:
    """List what lies where worktrees and their caches are made."""
    return sorted(_ledger(world).worktree("run", "leg").parents[1].glob("*/*"))


def _log(world: World, leg: str) -> str:
    return world.text(leg, "setup.log")


def _needs(tool: str) -> None:
    found = importlib.util.find_spec("pip") if tool == "pip" else shutil.which(tool)
    if found is None:
        pytest.skip(f"this machine has no {tool}")


@pytest.mark.parametrize(("tool", "command"), [("pip", PYTHON), ("uv", UV), ("npm", NPM)], ids=["pip", "uv", "npm"])
def test_a_package_is_fetched_once_for_all_worktrees_of_all_runs(jailed: World, tool: str, command: str) -> None:
    _needs(tool)
    with offered() as index:
        jailed.save(jail={"mode": "required"}, worktree={"setup": [command.format(url=index.url)]})
        for name in ("one.md", "two.md"):
            through(jailed.relay("run", jailed.spec(name=name)))
        assert len(index.fetched) == 1, index.fetched
    assert _left(jailed) == []


def _crated(world: World, index: Index) -> None:
    world.commit({"Cargo.toml": CRATE, "src/lib.rs": "pub use tiny::one;\n", ".gitignore": "Cargo.lock\ntarget\n"})
    world.save(jail={"mode": "required"}, worktree={"setup": [CARGO.format(url=index.url)]})


def test_cargo_builds_without_a_network_from_what_set_up_fetched_for_workers_and_judges(jailed: World) -> None:
    _needs("cargo")
    build = 'CARGO_REGISTRIES_HERE_INDEX=sparse+{url}/index/ cargo check -q --offline --target-dir "$TMPDIR/built"'
    with offered() as index:
        _crated(jailed, index)
        text = f"# Fix\n\n## Acceptance\n\n- it builds: `{build.format(url=index.url)}`\n"
        through(jailed.relay("run", jailed.spec(text)))
        assert len(index.fetched) == 1, index.fetched
    assert [receipt["score"] for receipt in jailed.receipts()] == ["1/1", None, "1/1"]


def test_what_a_worker_leaves_in_a_cache_reaches_no_judge_and_no_later_run(jailed: World) -> None:
    agents(jailed, 'echo poison > "$PIP_CACHE_DIR/mark"', worktree={"setup": [MARK]})
    for name in ("one.md", "two.md"):
        through(jailed.relay("run", jailed.spec(name=name)))
    logs = [log.read_text() for log in jailed.runs.glob("*/legs/*/setup*.log")]
    assert len(logs) >= 6
    assert ["poison" in log for log in logs] == [False] * len(logs)
    assert list(_shared(jailed).rglob("mark")) == []


def test_set_up_that_a_worker_wrote_fills_its_worktree_alone(jailed: World) -> None:
    jailed.commit({"setup.sh": f"{MARK}\n"})
    poisoned = f"{MARK}; echo poison > $PIP_CACHE_DIR/mark; cat $PIP_CACHE_DIR/mark"
    agents(jailed, f"cat > setup.sh <<'END'\n{poisoned}\nEND", worktree={"setup": ["sh setup.sh"]})
    through(jailed.relay("run", jailed.spec()))
    assert "unmarked" in _log(jailed, "01-implement")
    for leg in ("02-review", "03-acceptance"):
        assert "unmarked\npoison" in _log(jailed, leg)
    assert list(_shared(jailed).rglob("mark")) == []


def test_what_a_judge_leaves_in_a_cache_vanishes_with_its_command(jailed: World) -> None:
    judge = 'grep -q fetched "$UV_CACHE_DIR/mark" && echo no > "$UV_CACHE_DIR/mark" && rm -r "$PIP_CACHE_DIR" || exit 1'
    setup = 'mkdir -p "$UV_CACHE_DIR" "$PIP_CACHE_DIR" && echo fetched > "$UV_CACHE_DIR/mark"'
    agents(jailed, judge=judge, worktree={"setup": [setup]})
    jailed.save(
        jail={"mode": "required"}, worktree={"setup": [setup]}, checks={"mark": 'grep fetched "$UV_CACHE_DIR/mark"'}
    )
    through(jailed.relay("run", jailed.spec()))
    assert [path.read_text() for path in _shared(jailed).rglob("uv/mark")] == ["fetched\n"]


def test_an_agent_and_the_checks_of_every_leg_have_what_set_up_fetched(jailed: World) -> None:
    setup = 'mkdir -p "$UV_CACHE_DIR" && echo fetched > "$UV_CACHE_DIR/mark"'
    agents(jailed, 'grep -q fetched "$UV_CACHE_DIR/mark" || exit 1', worktree={"setup": [setup]})
    jailed.save(jail={"mode": "required"}, worktree={"setup": [setup]}, checks={"mark": 'cat "$UV_CACHE_DIR/mark"'})
    through(jailed.relay("run", jailed.spec()))


@pytest.mark.parametrize("tables", [{"worktree": {"setup": [MARK.replace("$PIP", "./pip")], "cache_gb": 0}}, {}])
def test_without_a_wish_for_them_there_are_no_caches(jailed: World, tables: dict[str, Any]) -> None:
    agents(jailed, 'test -z "$PIP_CACHE_DIR$CARGO_HOME" || exit 1', **tables)
    through(jailed.relay("run", jailed.spec()))
    assert not _shared(jailed).exists()


def test_without_a_jail_the_tools_have_the_person_s_own(world: World) -> None:
    world.save(worktree={"setup": ['test -z "$PIP_CACHE_DIR"']})
    through(world.relay("run", world.spec()))
    assert not _shared(world).exists()


def test_caches_that_grew_too_large_begin_anew(jailed: World) -> None:
    setup = f'{MARK}; head -c 3000000 /dev/urandom > "$PIP_CACHE_DIR/mark"'.replace("cat", "wc -c <")
    agents(jailed, worktree={"setup": [setup], "cache_gb": 0.001})
    for name in ("one.md", "two.md"):
        through(jailed.relay("run", jailed.spec(name=name)))
    first, second = sorted(path.read_text() for path in jailed.runs.glob("*/legs/01-implement/setup.log"))
    assert "begin anew" not in first
    assert "more than 0.001 GB, and begin anew" in second
    assert "unmarked" in first
    assert "unmarked" in second


@pytest.mark.parametrize("gigabytes", [-1, "many", float("nan")])
def test_a_size_that_means_nothing_is_refused(world: World, gigabytes: object) -> None:
    world.save(worktree={"cache_gb": gigabytes})
    refused(world.relay("run", world.spec()), 2, "worktree.cache_gb")


def test_a_set_up_that_cannot_have_the_caches_goes_on_without(jailed: World) -> None:
    agents(jailed, worktree={"setup": ['test -z "$PIP_CACHE_DIR"']})
    place = _shared(jailed)
    place.parent.mkdir(parents=True)
    place.write_text("a file where the folder should be")
    through(jailed.relay("run", jailed.spec()))
    assert "has no caches" in _log(jailed, "01-implement")


def test_backups_know_that_the_caches_need_not_be_kept(jailed: World) -> None:
    agents(jailed, worktree={"setup": [MARK]})
    through(jailed.relay("run", jailed.spec()))
    assert (_shared(jailed) / "CACHEDIR.TAG").read_bytes().startswith(b"Signature: 8a477f597d28d172789f06886806bc55\n")


@pytest.mark.parametrize("detached", [False, True])
def test_a_base_that_is_an_agent_s_work_fills_no_caches_but_its_own(jailed: World, *, detached: bool) -> None:
    jailed.commit({"setup.sh": f"{MARK}\n"})
    agents(jailed, worktree={"setup": ["sh setup.sh"]})
    jailed.git("branch", "stacked")
    jailed.git("checkout", "-q", "stacked")
    jailed.commit({"setup.sh": f"{MARK}; echo poison > $PIP_CACHE_DIR/mark\n"})
    if detached:
        jailed.git("checkout", "-q", "--detach")
    through(jailed.relay("run", jailed.spec(name="one.md")))
    jailed.git("checkout", "-q", *(["--detach"] if detached else []), "main")
    through(jailed.relay("run", jailed.spec(name="two.md")))
    assert [path.read_text() for path in _shared(jailed).rglob("mark")] == ["poison\n"]
    [two] = [run for run in jailed.runs.iterdir() if run.name.endswith("two")]
    logs = [log.read_text() for log in two.glob("legs/*/setup*.log")]
    assert len(logs) >= 3
    assert ["poison" in log for log in logs] == [False] * len(logs)
