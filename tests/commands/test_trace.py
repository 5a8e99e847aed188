"""The story of a run: complete, in order, and without a word of an agent's."""

from tests.world import World


def test_the_story_is_told_in_order_with_who_and_from_where_to_where(accepted: World) -> None:
    ran = accepted.inside("trace")
    assert ran.code == 0
    first, review, second, *_ = accepted.receipts()
    begun = [line.split("  ")[1].split(",")[0] for line in ran.out.splitlines() if ", round " in line]
    assert begun == ["01-implement", "02-review", "03-implement", "04-review", "05-acceptance"]
    assert f"began at {first['start'][:12]}, saw spec; withheld: reasoning, transcript" in ran.out
    assert f"changed calc.py +1 -1: now at {first['head'][:12]}" in ran.out
    assert "the agent says done (a claim)" in ran.out
    assert f"finding {review['findings'][0]['id']} major, located, blocks, calc.py:2, since round 1" in ran.out
    assert "verdict revise, as the agent says" in ran.out
    assert f"began at {second['start'][:12]}, saw spec, note 02-review, findings" in ran.out
    assert "criterion c1 met, by relay: `grep -q 'return a + b' calc.py` exited 0" in ran.out


def test_it_ends_with_how_it_stands_what_it_took_and_how_it_was_watched(accepted: World) -> None:
    *_, outcome, total, watched = accepted.inside("trace").out.splitlines()
    assert outcome == "outcome: accepted"
    assert total.startswith("in all: 5 legs, 0 acts, 2 rounds, ")
    assert total.endswith(" s of agents, cost unknown")
    assert watched == "boundaries were watched, not enforced: there was no jail"


def test_no_word_of_an_agent_is_in_it(accepted: World) -> None:
    ran = accepted.inside("trace")
    for said in ("turn 1", "changed the code", "this is wrong", "it is not what the spec says", "nothing left"):
        assert said in "".join((leg / "reply.json").read_text() for leg in accepted.legs())
        assert said not in ran.out


def test_what_people_did_is_told_with_who_and_by_hash_what_they_wrote(accepted: World) -> None:
    accepted.inside("reject", "task", "--why", "the name is wrong")
    act = accepted.receipts()[-1]
    ran = accepted.inside("trace")
    assert f"{act['ended']}  06-reject: {act['by']}: reject" in ran.out
    assert f"kept with it (sha256 {act['why_sha256'][:12]})" in ran.out
    assert "the name is wrong" not in ran.out
    assert "outcome: open" in ran.out


def test_a_shipment_is_told_with_what_went_where(accepted: World) -> None:
    accepted.inside("approve", "task")
    ran = accepted.inside("trace")
    assert "07-ship: relay: shipped" in ran.out
    assert "into: refs/heads/main" in ran.out
    assert f"commit: {accepted.git('rev-parse', 'main')}" in ran.out
    assert "5 legs, 2 acts, 2 rounds" in ran.out


def test_a_verdict_that_is_not_what_the_agent_claims_says_both(world: World) -> None:
    world.implementer({"calc.py": "def add(a, b):\n    return b\n"})
    world.inside("run", world.spec(), "--until", "acceptance")
    ran = world.inside("trace")
    assert "verdict revise, though the agent says approve, 0/1 criteria hold" in ran.out
    assert "(claimed approve)" in world.inside("show", "task/acceptance").out


def test_a_leg_that_failed_says_by_what(world: World) -> None:
    world.shell("implementer", "exit 3", phase="implement")
    world.save()
    world.inside("run", world.spec())
    ran = world.inside("trace")
    assert f"ended by {world.receipts()[0]['ended_by']} (" in ran.out
    assert "outcome: needs-human" in ran.out


def test_json_gives_the_receipts_a_line_each(accepted: World) -> None:
    events = accepted.inside("trace", "--json").events
    assert {event["type"] for event in events} == {"receipt"}
    assert [event["receipt"] for event in events] == accepted.receipts()


def test_a_run_that_has_not_begun_is_told_too(accepted: World) -> None:
    for leg in accepted.legs():
        (leg / "receipt.json").unlink()
    ran = accepted.inside("trace")
    assert ran.code == 0
    assert "in all: 0 legs, 0 acts, 1 round, 0.0 s of agents, $0.00" in ran.out
