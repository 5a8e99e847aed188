"""What `relay reap` says: a line for each thing it repaired or raised, JSON for programs, nothing where nothing is."""

import shutil

from tests.world import World


def test_nothing_to_reap_is_said_and_is_no_failure(accepted: World) -> None:
    ran = accepted.inside("reap")
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing to reap\n")
    assert accepted.inside("reap", "--json").out == ""


def test_a_thing_that_is_raised_has_a_line_and_the_command_that_settles_it(accepted: World) -> None:
    run = accepted.only_run()
    shutil.rmtree(accepted.runs / run)
    ran = accepted.inside("reap")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert f"branch  branch `relay/{run}` is of a run that the ledger does not know: look at it first, git log" in lines
    assert f"      hint: git branch -D relay/{run}" in lines
    second = accepted.inside("reap")
    assert second.out == ""
    assert second.err == "nothing to reap\n2 raised before and not settled: relay reap -v\n"
    assert accepted.inside("reap", "-v").err.count(f"of {run}, which") == 1


def test_json_has_an_event_for_each_thing_with_what_it_is_about(accepted: World) -> None:
    draft = accepted.runs / ".new-0123456789ab"
    draft.mkdir()
    accepted.git("branch", "relay/261129-0230-gone")
    dry = accepted.inside("reap", "--json", "--dry-run").events
    wet = accepted.inside("reap", "--json").events
    assert [(event["type"], event["about"], event["dry_run"]) for event in dry] == [
        ("repaired", "temp", True),
        ("alert", "branch", True),
    ]
    assert [event | {"dry_run": True} for event in wet] == [
        event | ({"since": now["since"]} if "since" in event else {}) for event, now in zip(dry, wet, strict=True)
    ]
    assert wet[1]["command"] == "git branch -D relay/261129-0230-gone"
    assert wet[1]["run"] == "261129-0230-gone"
    assert not draft.exists()


def test_quiet_says_only_what_was_found(accepted: World) -> None:
    ran = accepted.inside("reap", "-q")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
