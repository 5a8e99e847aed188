"""`ship.method = "pr"`: one pull request with the accepted tree, opened once, and looked after until it ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.ways import github, transport
from tests.forge import GONE, TOKEN, lined_up
from tests.forge.desk import Desk
from tests.loop.faults import nothing_started, refused, sober, stopped, through
from tests.world import BROKEN, FIXED


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(github, "WAITS", (0.01, 0.01))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    with made.hub:
        yield made.accepted()


def test_a_pull_request_is_opened_and_followed_until_it_is_merged(desk: Desk) -> None:
    world, hub, run = desk.world, desk.hub, desk.world.only_run()
    base = desk.away.tip()
    ran = world.inside("approve")
    through(ran)
    assert "proposed" in ran.err
    [pull] = hub.pulls
    assert (pull.title, pull.head, pull.base, pull.state) == ("Make add add", f"relay/{run}", "main", "open")
    assert desk.away.git("rev-parse", f"{desk.branch}^{{tree}}") == world.git("rev-parse", f"relay/{run}^{{tree}}")
    assert desk.away.git("rev-parse", f"{desk.branch}^") == base == desk.away.tip()
    effect = world.receipts()[-1]["effect"]
    assert (effect["number"], effect["url"]) == ("1", "https://hub.example.org/acme/shop/pull/1")
    assert (effect["outcome"], effect["commit"]) == ("proposed", desk.away.tip(desk.branch))

    ran = world.inside("status")
    through(ran)
    assert "proposed" in ran.out
    merged = hub.merge()
    through(world.inside("status"))
    assert world.receipts()[-1]["effect"]["outcome"] == "shipped"
    assert world.receipts()[-1]["effect"]["commit"] == merged
    assert "shipped" in world.inside("status", "--all").out
    asked = len(hub.asked)
    through(world.inside("status"))
    assert len(hub.asked) == asked, "what ended is not asked about any more"
    ran = world.inside("approve", run)
    through(ran)
    assert "has shipped already" in ran.err
    assert TOKEN not in ran.out + ran.err


def test_its_page_says_what_and_why_and_how_it_was_found_good_and_what_it_cost(desk: Desk) -> None:
    through(desk.world.inside("approve"))
    body = desk.hub.pulls[0].body
    assert body.startswith("> turn 1")
    assert "> People pay too little. Ask @ada about it." in body, "the person's own words stay as they are"
    assert "| c1 | the sum is right" in body
    assert "| yes | `grep -q 'return a + b' calc.py` | 0 |" in body
    assert "implement: implementer (command)" in body
    assert "1 legs, 1 rounds" in body
    assert "$0.00" in body
    assert desk.world.only_run() in body


def test_findings_and_their_ends_stand_on_the_page(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    world = desk.world
    world.implementer({"calc.py": BROKEN.replace("a - b", "b - a")}, {"calc.py": FIXED})
    world.reviser("review", path="calc.py", quote="return b - a", title="still subtracts")
    world.save(phases=["implement", "review"], ship={"method": "pr", "api": desk.hub.url})
    world.git("push", "-q", "origin", "main")
    with desk.hub:
        desk.accepted()
        through(world.inside("approve"))
    [line] = [line for line in desk.hub.pulls[0].body.splitlines() if "still subtracts" in line]
    assert "(major, located, `calc.py:2`)" in line
    assert "stands" not in line


def test_one_that_is_closed_needs_a_person_and_another_approval_opens_another(desk: Desk) -> None:
    world, hub, run = desk.world, desk.hub, desk.world.only_run()
    through(world.inside("approve"))
    hub.close()
    stopped(world.inside("approve", run), 4, "needs-human", "was closed unmerged")
    through(world.inside("approve", run))
    assert [pull.state for pull in hub.pulls] == ["closed", "open"]
    assert desk.effects == ["proposed", "failed", "proposed"]


def test_one_that_somebody_opened_from_that_branch_is_taken_over(desk: Desk) -> None:
    through(desk.world.inside("approve"))
    desk.hub.close()
    stopped(desk.world.inside("approve", desk.world.only_run()), 4)
    fields = {"title": "mine", "body": "", "head": desk.branch, "base": "main", "draft": False}
    desk.hub.answer("POST", "/repos/acme/shop/pulls", fields, TOKEN)
    through(desk.world.inside("approve"))
    assert [pull.title for pull in desk.hub.pulls] == ["Make add add", "mine"]
    assert desk.world.receipts()[-1]["effect"]["number"] == "2"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, ["401", "Bad credentials", "gh auth login"]),
        (403, ["403", "Resource not accessible", "the token needs"]),
        (404, ["acme/shop", "404"]),
        (502, ["could not answer (502)"]),
        (GONE, ["no answer from"]),
    ],
)
@pytest.mark.parametrize("what", ["*", "POST /pulls"])
def test_what_the_forge_refuses_leaves_everything_as_it_was(
    desk: Desk, what: str, status: int, words: list[str]
) -> None:
    before = desk.away.branches()
    desk.hub.fails(what, status)
    stopped(desk.world.inside("approve"), 4, "needs-human", *words)
    assert (desk.away.branches(), desk.hub.pulls, desk.effects) == (before, [], ["failed"])
    assert TOKEN not in desk.world.text("03-ship")
    desk.hub.mended()
    through(desk.world.inside("approve", desk.world.only_run()))
    assert (len(desk.hub.pulls), desk.effects) == (1, ["failed", "proposed"])


@pytest.mark.parametrize("status", [502, GONE])
def test_an_answer_that_was_lost_does_not_open_another_one(desk: Desk, status: int) -> None:
    desk.hub.fails("POST /pulls", status, done=True)
    through(desk.world.inside("approve"))
    assert (len(desk.hub.pulls), desk.effects) == (1, ["proposed"])


def test_a_forge_that_stumbles_is_asked_again(desk: Desk) -> None:
    desk.hub.fails("GET /pulls", 503, times=2)
    through(desk.world.inside("approve"))
    assert desk.effects == ["proposed"]


def test_a_forge_that_is_slow_is_waited_for_and_not_for_ever(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.hub.fails("GET /pulls", 200, times=1, slow=0.5)
    through(desk.world.inside("approve"))
    desk.hub.fails("GET /pulls/N", 200, slow=1.0)
    monkeypatch.setattr(transport, "SECONDS", 0.2)
    ran = desk.world.inside("status")
    through(ran)
    assert "cannot be looked at now: no answer" in ran.err
    assert desk.effects == ["proposed"]


def test_a_wrong_token_or_none_pushes_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    before = desk.away.branches()
    monkeypatch.setenv("GH_TOKEN", "ghp_" + "wrong" * 8)
    stopped(desk.world.inside("approve"), 4, "Bad credentials")
    monkeypatch.delenv("GH_TOKEN")
    stopped(desk.world.inside("approve", desk.world.only_run()), 4, "neither `gh` nor a token")
    assert desk.away.branches() == before


def test_a_repository_that_was_renamed_is_told_with_what_mends_it(desk: Desk) -> None:
    before = desk.away.branches()
    desk.hub.fails("GET /pulls", 301)
    stopped(
        desk.world.inside("approve"), 4, "has acme/shop on hub.example.org elsewhere now (301)", "set-url origin URL"
    )
    assert desk.away.branches() == before


def test_commits_of_somebody_else_on_the_branch_are_never_replaced(desk: Desk) -> None:
    through(desk.world.inside("approve"))
    theirs = desk.away.mate({"notes.txt": "mine\n"}, desk.branch)
    desk.hub.close()
    stopped(desk.world.inside("approve", desk.world.only_run()), 4)
    stopped(desk.world.inside("approve", desk.world.only_run()), 4, "a commit that is not ours", "by Grace: a mate's")
    assert desk.away.tip(desk.branch) == theirs


@pytest.mark.parametrize("allowed", [True, False])
def test_it_is_merged_by_the_forge_once_it_is_ready_where_that_is_wanted(tmp_path: Path, *, allowed: bool) -> None:
    desk = Desk(tmp_path, auto_merge="squash", draft=True)
    desk.hub.auto_allowed = allowed
    with desk.hub:
        ran = desk.accepted().world.inside("approve")
    through(ran)
    effect = desk.world.receipts()[-1]["effect"]
    assert effect["outcome"] == "proposed"
    assert ("a person has to merge it there: Auto merge is not allowed" in ran.err) is not allowed, ran
    assert (desk.hub.pulls[0].auto, desk.hub.pulls[0].draft) == ("SQUASH" if allowed else None, True)
    assert effect["auto_merge"] == ("squash" if allowed else "no: Auto merge is not allowed for this repository")


def test_a_merge_is_confirmed_by_whoever_has_the_time_for_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, verify=["grep -q 'return a + b' calc.py", "test ! -e news.txt"])
    world = desk.world
    with desk.hub:
        through(desk.accepted().world.inside("approve"))
        desk.away.mate({"news.txt": "meanwhile\n"})
        desk.hub.merge()
        through(world.inside("status"))
        assert desk.effects == ["proposed"]
        stopped(world.inside("approve", world.only_run()), 4, "it went out as", "test ! -e news.txt")
    assert desk.effects == ["proposed", "unconfirmed"]
    assert [check["exit"] for check in world.receipts()[-1]["checks"]] == [0, 1]


def test_a_base_there_that_moved_in_the_same_file_sends_it_back_before_anything_is_proposed(desk: Desk) -> None:
    desk.away.mate({"calc.py": BROKEN + "# a mate was here\n"})
    stopped(desk.world.inside("approve"), 1, "the base moved")
    assert (desk.hub.pulls, sorted(desk.away.branches())) == ([], ["main"])


def test_a_remote_that_is_on_no_forge_is_refused_before_anything_runs(tmp_path: Path) -> None:
    world, _ = lined_up(tmp_path, method="pr")
    world.git("remote", "set-url", "origin", str(tmp_path / "origin.git"))
    refused(world.inside("run", world.spec()), 2, "no repository on a forge", "[ship] remote")
    world.save(phases=["implement"], ship={"method": "pr", "api": "http://hub.example.org/api/v3"})
    world.git("remote", "set-url", "origin", "git@hub.example.org:acme/shop.git")
    refused(world.inside("run", world.spec()), 2, "no https address")
    nothing_started(world)


def test_a_branch_that_is_not_there_gets_no_proposal(desk: Desk) -> None:
    stopped(desk.world.inside("approve", "--into", "relase"), 4, "no branch `relase`", "--into BRANCH")
    assert (desk.hub.pulls, sorted(desk.away.branches())) == ([], ["main"])
    through(desk.world.inside("approve", desk.world.only_run(), "--into", "main"))
    assert [pull.base for pull in desk.hub.pulls] == ["main"]


def test_a_change_that_is_there_already_is_not_proposed(desk: Desk) -> None:
    desk.away.mate({"calc.py": FIXED})
    sober(desk.world.inside("approve"))
    assert desk.hub.pulls == []
