"""A proposal from a fork: the commit goes to the fork, the proposal to where it came from, and nothing else moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forge import TOKEN, Away, Hub
from tests.loop.faults import nothing_started, refused, stopped, through, untouched
from tests.world import BROKEN, FIXED, World

UPSTREAM = "https://hub.example.org/acme/shop.git"
FORK = "https://hub.example.org/ada/shop.git"


class Fork:
    """A run of somebody who may not push to `upstream`, and has a fork of it as `origin`."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder, {"README.md": "A calculator\n", "calc.py": BROKEN})
        self.world.implementer({"calc.py": FIXED})
        self.upstream, self.fork = Away(self.world, "upstream"), Away(self.world)
        self.upstream.on_a_forge(UPSTREAM, "upstream")
        self.fork.on_a_forge(FORK)
        self.hub = Hub(self.upstream)
        self.hub.forks["ada"] = self.fork
        self.line_up(upstream="upstream")

    def line_up(self, **ship: object) -> None:
        """Write how it ships, there and here."""
        self.world.save(phases=["implement"], ship={"method": "pr", "api": self.hub.url, **ship})
        self.world.git("push", "-q", "upstream", "main")


@pytest.fixture
def forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fork]:
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "*")
    made = Fork(tmp_path)
    with made.hub:
        yield made


def test_the_commit_goes_to_the_fork_and_the_proposal_to_where_it_came_from(forked: Fork) -> None:
    world = forked.world
    through(world.inside("run", world.spec()))
    run, behind = world.only_run(), forked.fork.tip()
    rehearsed = world.inside("approve", "--dry-run")
    assert rehearsed.out.startswith(f"pr from relay/{run} into main on upstream:"), rehearsed
    forked.upstream.hook("pre-receive", "exit 1")
    with untouched(world):
        through(world.inside("approve"))
    [pull] = forked.hub.pulls
    assert (pull.owner, pull.head, pull.base) == ("ada", f"relay/{run}", "main")
    assert forked.fork.git("rev-parse", f"relay/{run}^") == forked.upstream.tip(), "on top of theirs, not of the fork's"
    assert (forked.fork.tip(), list(forked.upstream.branches())) == (behind, ["main"])
    made = forked.hub.merge()
    through(world.inside("status"))
    effect = world.receipts()[-1]["effect"]
    assert (effect["outcome"], effect["commit"]) == ("shipped", made)
    assert world.git("rev-parse", f"{made}^{{tree}}") == world.git("rev-parse", f"relay/{run}^{{tree}}")


def test_a_rejection_closes_it_and_the_next_one_is_opened_from_the_same_fork(forked: Fork) -> None:
    world = forked.world
    through(world.inside("run", world.spec()))
    through(world.inside("approve"))
    run = world.only_run()
    world.implementer({"calc.py": FIXED}, {"calc.py": FIXED + "# it adds\n"})
    through(world.inside("reject", run, "--why", "say so"))
    through(world.inside("resume", run))
    through(world.inside("approve", run))
    assert [(pull.state, pull.owner) for pull in forked.hub.pulls] == [("closed", "ada"), ("open", "ada")]


def test_a_fork_that_the_forge_does_not_take_from_gets_its_branch_back(forked: Fork) -> None:
    world = forked.world
    through(world.inside("run", world.spec()))
    forked.hub.fails("POST /pulls", 403)
    stopped(world.inside("approve"), 4, "needs-human", "403")
    assert list(forked.fork.branches()) == ["main"]


@pytest.mark.parametrize(
    ("ship", "why"),
    [
        ({"upstream": "nowhere"}, "there is no remote `nowhere`"),
        ({"upstream": "upstream", "forge": "gitlab"}, "on GitHub alone"),
        ({"upstream": "other"}, "`hub.example.org` cannot propose to `other.example.org`"),
    ],
)
def test_a_fork_that_cannot_propose_is_said_before_anything_runs(forked: Fork, ship: dict[str, str], why: str) -> None:
    forked.world.git("remote", "add", "other", "https://other.example.org/acme/shop.git")
    forked.line_up(**ship)
    refused(forked.world.inside("run", forked.world.spec()), 2, why)
    nothing_started(forked.world)
