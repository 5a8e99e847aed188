"""An open proposal that others have their hands on: it is rejected, retargeted, pushed to, or its forge is odd."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.ways import github, transport
from tests.forge import GONE, TOKEN, Hub, lined_up
from tests.forge.desk import Desk
from tests.loop.faults import refused, stopped, through
from tests.world import FIXED

WHY = ("--why", "say why in a comment")
SESAME = "open-sesame-by-the-third-door"
"""A secret that looks like none."""


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(github, "WAITS", (0.01, 0.01))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Make a run that is proposed, and that the forge merges by itself once it is ready."""
    made = Desk(tmp_path, auto_merge="squash")
    with made.hub:
        through(made.accepted().world.inside("approve"))
        assert (made.hub.pulls[0].state, made.hub.pulls[0].auto) == ("open", "SQUASH")
        yield made


def acts(desk: Desk) -> list[str]:
    """Return what was done since the leg, with what became of it."""
    return [(one["effect"] or {}).get("outcome") or one["act"] for one in desk.world.receipts() if one["act"]]


# --- rejected ---------------------------------------------------------------------------------------------------------


def test_a_rejection_closes_the_proposal_and_the_next_round_opens_another_one(desk: Desk) -> None:
    world, hub, run, proposed = desk.world, desk.hub, desk.world.only_run(), desk.away.tip(desk.branch)
    ran = world.inside("reject", run, *WHY)
    through(ran)
    assert "pull/1 was closed, since a person rejects it" in ran.err
    assert (hub.pulls[0].state, hub.pulls[0].auto) == ("closed", None)
    assert desk.away.tip(desk.branch) == proposed, "the branch is kept, with what was said of it"
    assert acts(desk) == ["approve", "proposed", "withdrawn", "reject"]
    world.implementer({"calc.py": FIXED + "# since people pay\n"})
    through(world.inside("resume"))
    through(world.inside("approve"))
    assert [pull.state for pull in hub.pulls] == ["closed", "open"]
    assert desk.away.git("show", f"{desk.branch}:calc.py") + "\n" == FIXED + "# since people pay\n"
    through(world.inside("verify", run))


def test_a_run_that_is_closed_leaves_no_proposal_open(desk: Desk) -> None:
    stopped(desk.world.inside("reject", desk.world.only_run(), "--close", *WHY), 1, "not accepted, closed")
    assert (desk.hub.pulls[0].state, desk.hub.pulls[0].auto) == ("closed", None)


def test_what_was_merged_before_it_was_rejected_has_shipped(desk: Desk) -> None:
    merged = desk.hub.merge()
    refused(desk.world.inside("reject", desk.world.only_run(), *WHY), 2, "is shipped: it cannot be rejected any more")
    assert acts(desk) == ["approve", "proposed", "shipped"]
    assert desk.world.receipts()[-1]["effect"]["commit"] == merged


def test_what_is_merged_in_the_moment_of_the_rejection_has_shipped(desk: Desk) -> None:
    desk.hub.meanwhile["PATCH /pulls/N"] = desk.hub.merge
    refused(desk.world.inside("reject", desk.world.only_run(), *WHY), 2, "is shipped: it cannot be rejected any more")
    assert acts(desk) == ["approve", "proposed", "shipped"]


@pytest.mark.parametrize("what", ["*", "GET /pulls/N", "PATCH /pulls/N"])
@pytest.mark.parametrize("status", [403, 502, GONE])
def test_nothing_is_rejected_while_it_could_still_be_merged(desk: Desk, what: str, status: int) -> None:
    world, run = desk.world, desk.world.only_run()
    desk.hub.fails(what, status)
    refused(world.inside("reject", run, *WHY), 5, "may still be merged", "pull/1")
    assert (acts(desk), desk.hub.pulls[0].state) == (["approve", "proposed"], "open")
    assert "proposed" in world.inside("status", "--offline").out
    desk.hub.mended()
    through(world.inside("reject", run, *WHY))
    assert (acts(desk)[2:], desk.hub.pulls[0].state) == (["withdrawn", "reject"], "closed")


def test_one_that_somebody_closed_is_rejected_without_more_ado(desk: Desk) -> None:
    desk.hub.close()
    through(desk.world.inside("reject", desk.world.only_run(), *WHY))
    assert acts(desk) == ["approve", "proposed", "reject"]


def test_a_proposal_that_relay_never_heard_of_opening_is_closed_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with desk.hub as hub:
        run = desk.accepted().world.only_run()
        hub.fails("POST /pulls", 502, done=True)
        hub.meanwhile["POST /pulls"] = lambda: hub.fails("GET /pulls", 502)
        stopped(desk.world.inside("approve"), 4, "could not answer (502)")
        assert [pull.state for pull in hub.pulls] == ["open"]
        hub.mended()
        through(desk.world.inside("reject", run, *WHY))
        assert [pull.state for pull in hub.pulls] == ["closed"]


def test_a_shipment_that_failed_can_be_rejected_though_nobody_answers(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with desk.hub as hub:
        run = desk.accepted().world.only_run()
        hub.fails("*", 502)
        stopped(desk.world.inside("approve"), 4, "could not answer (502)")
        ran = desk.world.inside("reject", run, *WHY)
    through(ran)
    assert "nobody can say now whether a proposal of it is open" in ran.err


# --- merged, but not what was accepted --------------------------------------------------------------------------------


def test_a_merge_of_something_else_is_never_shipped(desk: Desk) -> None:
    theirs = desk.away.mate({"calc.py": "# theirs\n"}, desk.branch, force=True)
    merged = desk.hub.merge()
    ran = desk.world.inside("status")
    through(ran)
    effect = desk.world.receipts()[-1]["effect"]
    assert (effect["outcome"], effect["merged"], effect["head"]) == ("failed", merged, theirs)
    assert f"was merged as `{merged[:12]}`, but its commit is `{theirs[:12]}`, not the accepted" in ran.err
    assert "needs-human" in ran.out


def test_an_approval_after_commits_of_others_were_merged_with_it_finds_the_change_there(desk: Desk) -> None:
    desk.away.mate({"notes.txt": "mine\n"}, desk.branch)
    merged = desk.hub.merge(squash=False)
    stopped(desk.world.inside("approve", desk.world.only_run()), 4, "needs-human", "not the accepted")
    through(desk.world.inside("approve", desk.world.only_run()))
    effect = desk.world.receipts()[-1]["effect"]
    assert (effect["outcome"], effect["commit"]) == ("shipped", merged)
    assert effect["why"] == "the branch held this tree already, so no commit was made"


def test_one_that_was_merged_elsewhere_has_not_shipped(desk: Desk) -> None:
    desk.away.git("branch", "release", "main")
    desk.hub.pulls[0].base = "release"
    desk.hub.merge()
    stopped(desk.world.inside("approve", desk.world.only_run()), 4, "it goes into `release`, not into `main`")
    through(desk.world.inside("approve", desk.world.only_run()))
    assert [(pull.state, pull.base) for pull in desk.hub.pulls] == [("closed", "release"), ("open", "main")]


def test_an_open_one_that_is_not_what_was_accepted_any_more_is_said(desk: Desk) -> None:
    theirs = desk.away.mate({"notes.txt": "mine\n"}, desk.branch)
    desk.away.git("branch", "release", "main")
    desk.hub.pulls[0].base = "release"
    ran = desk.world.inside("status")
    through(ran)
    assert f"is open, but its commit is `{theirs[:12]}`, not the accepted" in ran.err
    assert "and it goes into `release`, not into `main`" in ran.err
    assert acts(desk) == ["approve", "proposed"]


# --- approved again ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [("--into", "release"), ("--leg", "01", *WHY), ("--into", "release", "--dry-run")])
def test_what_is_proposed_already_cannot_be_sent_elsewhere(desk: Desk, more: tuple[str, ...]) -> None:
    ran = desk.world.inside("approve", desk.world.only_run(), *more)
    refused(ran, 2, "is proposed already, into `main`", "relay reject")
    assert (len(desk.hub.pulls), acts(desk)) == (1, ["approve", "proposed"])


def test_the_same_approval_twice_is_no_other_wish(desk: Desk) -> None:
    through(desk.world.inside("approve", desk.world.only_run(), "--into", "main"))
    desk.hub.merge()
    through(desk.world.inside("approve", desk.world.only_run(), "--into", "refs/heads/main"))
    refused(desk.world.inside("approve", desk.world.only_run(), "--into", "release"), 2, "is shipped already")


@pytest.mark.parametrize("what", ["forced back", "removed"])
def test_what_was_merged_has_shipped_whatever_became_of_the_branch_since_and_that_is_said(
    desk: Desk, what: str
) -> None:
    before, made = desk.away.tip(), desk.hub.merge()
    if what == "removed":
        desk.away.git("update-ref", "-d", "refs/heads/main")
    else:
        desk.away.git("update-ref", "refs/heads/main", before)
    ran = desk.world.inside("status")
    through(ran)
    assert f"it was merged as `{made[:12]}`, which `main` on `origin` does not hold any more" in ran.err
    assert (acts(desk), desk.world.receipts()[-1]["effect"]["commit"]) == (["approve", "proposed", "shipped"], made)
    through(desk.world.inside("approve", desk.world.only_run()))
    assert len(desk.hub.pulls) == 1


def test_a_merge_waits_to_be_seen_while_its_remote_cannot_be_reached(desk: Desk) -> None:
    desk.hub.merge()
    away = desk.away.folder.rename(desk.away.folder.with_suffix(".away"))
    line = desk.world.inside("status", "--json").events[0]
    assert line["outcome"] == "proposed"
    assert str(line["needs"]).startswith("its proposal cannot be looked at now: `origin` cannot be reached")
    away.rename(desk.away.folder)
    assert desk.world.inside("status", "--json").events[-1]["outcome"] == "shipped"


# --- forges that are odd ----------------------------------------------------------------------------------------------


def test_forges_that_trickle_are_not_waited_for_by_a_glance(desk: Desk) -> None:
    world, first = desk.world, desk.world.only_run()
    through(world.inside("run", world.spec("# Make add add\n\n## Acceptance\n\n- it is: `test -f calc.py`\n")))
    [second] = {path.name for path in world.runs.iterdir() if not path.name.startswith(".")} - {first}
    through(world.inside("approve", second))
    desk.hub.trickle = 12
    ran = world.inside("status")
    through(ran)
    assert f"{first}: its proposal cannot be looked at now: no answer from" in ran.err
    assert f"{second}: its proposal cannot be looked at now: no time is left for it" in ran.err
    assert ran.out.count("proposed") == 2


def test_a_forge_that_trickles_holds_no_lock_for_long(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.hub.trickle = 3
    monkeypatch.setattr(transport, "SECONDS", 0.3)
    refused(desk.world.inside("reject", desk.world.only_run(), *WHY), 5, "no answer from", "longer than 0.3 seconds")
    assert (acts(desk), desk.hub.pulls[0].state) == (["approve", "proposed"], "open")


@pytest.mark.parametrize("secret", [TOKEN, SESAME])
def test_a_forge_that_repeats_the_token_or_plays_the_terminal_is_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("GH_TOKEN", secret)
    desk = Desk(tmp_path)
    world, hub = desk.world, desk.hub
    hub.token, hub.repeats = secret, f" for {secret}\n\x1b[2Jerror: all is lost\r\n{'very ' * 9000}long"
    with hub:
        desk.accepted()
        hub.fails("POST /pulls", 403)
        first = world.inside("approve")
        stopped(first, 4, "forbids it")
        hub.mended()
        second = world.inside("approve", world.only_run())
        through(second)
    told = first.err + first.out + second.err + second.out
    assert secret not in told
    assert not [line for line in told.splitlines() if line.startswith("error: all is lost") or len(line) > 1200]
    legs = [path.read_text() for path in world.runs.rglob("*.json")]
    assert not [text for text in legs if secret in text or "\\u001b" in text or "very " * 200 in text]


@pytest.mark.parametrize("method", ["push", "pr"])
def test_a_token_that_stands_in_an_address_is_never_shown(tmp_path: Path, method: str) -> None:
    world, away = lined_up(tmp_path)
    with Hub(away) as hub:
        world.save(phases=["implement"], ship={"method": method, "api": hub.url})
        world.git("remote", "set-url", "origin", hub.url.replace("//", f"//{SESAME}@") + "/acme/shop.git")
        through(world.inside("run", world.spec()))
        hub.fails("*", 401)
        ran = world.inside("approve")
    stopped(ran, 4, "`origin` cannot be reached", f"could not read Password for '{hub.url}'")
    assert SESAME not in ran.err + ran.out
    assert not [path for path in world.runs.rglob("*.json") if SESAME in path.read_text()]


def test_an_address_that_is_no_repository_is_named_without_its_login(tmp_path: Path) -> None:
    world, _ = lined_up(tmp_path)
    world.save(phases=["implement"], ship={"method": "pr"})
    world.git("remote", "set-url", "origin", f"https://{SESAME}@hub.example.org/shop")
    ran = world.inside("run", world.spec())
    refused(ran, 2, "no repository on a forge: `https://hub.example.org/shop`")
    assert SESAME not in ran.err
    world.save(phases=["implement"], ship={"method": "pr", "remote": f"https://{SESAME}@hub.example.org/a/b"})
    ran = world.inside("run", world.spec())
    refused(ran, 2, "no remote `https://hub.example.org/a/b`")
    assert SESAME not in ran.err
