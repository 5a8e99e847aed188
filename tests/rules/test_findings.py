"""What findings come to once Relay looked: places, repros, ids over rounds, what blocks, and the verdict."""

import itertools

import msgspec
import pytest

from relay.rules import findings
from relay.terms import CriterionResult, Dispute, Evidence, Finding, JudgeReply, Proof, Repro, Severity, Verdict
from tests import calls
from tests.findings import claim, judged, known

# --- evidence ---------------------------------------------------------------------------------------------------------


def test_the_line_that_counts_is_where_the_quote_stands() -> None:
    seen = [findings.Seen(proof="located", lines=(7, 9))]
    [found] = findings.judge([claim(line=70)], seen, known=(), round_=1, evidence="located", delta=None)
    assert (found.line, found.claimed_line) == (7, 70)
    [found] = findings.judge([claim(line=7)], seen, known=(), round_=1, evidence="located", delta=None)
    assert (found.line, found.claimed_line) == (7, None)


@pytest.mark.parametrize("line", [-5, 0, 10**30, -(10**30)])
def test_a_line_that_no_file_has_is_only_a_wrong_line(line: int) -> None:
    seen = [findings.Seen(proof="located", lines=(7, 9)), findings.Seen(proof="unfounded")]
    found = findings.judge([claim(line=line)] * 2, seen, known=(), round_=1, evidence="located", delta={})
    kept = min(max(line, 1), findings.LAST_LINE)
    assert [(one.line, one.claimed_line) for one in found] == [(7, kept), (kept, None)]
    assert msgspec.json.encode(found)


@pytest.mark.parametrize("path", ["a.py", "./a.py", " a.py\n", "b/../a.py", ".//a.py"])
def test_a_path_is_the_same_however_it_is_written(path: str) -> None:
    assert findings.plain(path) == "a.py"
    assert [findings.plain(other) for other in ("", " ", ".", "../a.py", "/a.py")] == ["", "", ".", "../a.py", "/a.py"]


def test_a_claimed_line_on_the_delta_makes_no_place_there() -> None:
    seen, delta = [findings.Seen(proof="located", lines=(7, 9))], {"a.py": [(70, 70)]}
    [found] = findings.judge([claim(line=70)], seen, known=(), round_=2, evidence="located", delta=delta)
    assert not found.blocks


@pytest.mark.parametrize(
    ("expect_exit", "expect_output", "code", "output", "shows"),
    [
        (None, None, 1, "", True),
        (None, None, 0, "", False),
        (3, None, 3, "", True),
        (3, None, 1, "", False),
        (0, None, 0, "", False),
        (None, "got 3", 0, "got  3\n", True),
        (None, "got 3", 1, "got 3", True),
        (None, "got 3", 1, "got 4", False),
        (0, "got 3", 0, "got 3", True),
        (0, "got 3", 1, "got 3", False),
        (None, " ", 0, "", False),
        (None, None, 127, "not found", False),
        (127, None, 127, "not found", False),
        (None, None, 126, "", False),
        (None, None, -9, "", False),
    ],
)
def test_a_repro_shows_what_its_exit_and_its_output_say(
    expect_exit: int | None, expect_output: str | None, code: int, output: str, *, shows: bool
) -> None:
    repro = Repro(command="./show", expect_exit=expect_exit, expect_output=expect_output)
    assert findings.reproduced(repro, code, output) is shows


# --- ids --------------------------------------------------------------------------------------------------------------


def test_a_new_finding_has_the_same_id_in_whichever_order_findings_come() -> None:
    claims = [claim("one"), claim("two"), claim("three", path="b.py")]
    ids = [{found.id for found in judged(*order)} for order in itertools.permutations(claims)]
    assert len(ids[0]) == 3
    assert all(found == ids[0] for found in ids)


def test_a_finding_is_known_by_the_id_it_names_or_by_its_place() -> None:
    before = by_name, by_place = known("F1", quote="another place"), known("F2")
    assert findings.identify([claim(same_as="F1")], before) == [("F1", by_name)]
    assert findings.identify([claim(quote="return  a\n- b")], before) == [("F2", by_place)]
    assert findings.identify([claim(same_as="F9", path="b.py")], before)[0][1] is None


@pytest.mark.parametrize(
    ("path", "quote", "same"),
    [
        ("a.py", "return a - b", True),
        ("a.py", "return b - a", True),
        ("b.py", "return a - b", True),
        ("b.py", "a -  b", True),
        ("b.py", "    return a - b  # moved", True),
        ("b.py", "import os", False),
        ("b.py", "", False),
    ],
)
def test_the_id_of_a_finding_with_which_it_has_nothing_in_common_counts_for_nothing(
    path: str, quote: str, *, same: bool
) -> None:
    [(identity, before)] = findings.identify([claim(same_as="F1", path=path, quote=quote)], [known("F1")])
    assert (identity == "F1", before is not None) == (same, same)


def test_two_findings_never_share_an_id() -> None:
    found = judged(claim(same_as="F1"), claim(same_as="F1"), claim(), before=(known("F1"),))
    assert [one.since for one in found] == [1, 2, 2]
    assert len({one.id for one in found}) == 3


def test_a_new_finding_never_gets_the_id_of_an_old_one() -> None:
    [(identity, _)] = findings.identify([claim()], [])
    [(renamed, before)] = findings.identify([claim()], [known(identity, quote="another place")])
    assert renamed != identity
    assert before is None


def test_an_agent_that_repeats_one_finding_a_hundred_times_gets_a_hundred_ids() -> None:
    assert len({one.id for one in judged(*[claim()] * 100)}) == 100


def test_two_hundred_findings_of_twenty_thousand_characters_are_each_folded_once() -> None:
    quotes = [f"{number} " + "x " * 10_000 for number in range(200)]
    claims = [claim(quote=quote, same_as=f"F{number}") for number, quote in enumerate(quotes)]
    before = [known(f"F{number}", quote=quote) for number, quote in enumerate(reversed(quotes))]
    with calls.counted() as count:
        assert len({identity for identity, _ in findings.identify(claims, before)}) == 200
    assert count["folded"] == 400
    assert count.total() < 20_000, "no pair of them is compared"


def test_a_dispute_stands_beside_the_finding_with_what_shows_it() -> None:
    assert findings.disputed(known(), Dispute(finding="F0", why="on purpose")).dispute == "on purpose"
    shown = findings.disputed(known(), Dispute(finding="F0", why="it holds", command="pytest -q"))
    assert shown.dispute == "it holds (shown by `pytest -q`)"
    ran = findings.disputed(known(), Dispute(finding="F0", why="it holds", command="pytest -q"), 1)
    assert ran.dispute == "it holds (Relay saw exit 1 of `pytest -q`)"


# --- what blocks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severity", "proof", "evidence", "blocks"),
    [
        ("blocker", "located", "located", True),
        ("major", "located", "located", True),
        ("minor", "confirmed", "located", False),
        ("nit", "confirmed", "located", False),
        ("blocker", "unfounded", "located", False),
        ("blocker", "located", "confirmed", False),
        ("major", "confirmed", "confirmed", True),
    ],
)
def test_only_grave_findings_with_evidence_block(
    severity: Severity, proof: Proof, evidence: Evidence, *, blocks: bool
) -> None:
    [found] = judged(claim(severity=severity), proof=proof, evidence=evidence)
    assert found.blocks is blocks


@pytest.mark.parametrize(
    ("delta", "blocks"),
    [
        (None, True),
        ({}, False),
        ({"b.py": [(50, 50)]}, False),
        ({"a.py": [(50, 52)]}, True),
        ({"a.py": [(10, 12), (53, 60)]}, True),
        ({"a.py": [(54, 60)]}, False),
        ({"a.py": [(40, 47)]}, True),
    ],
)
def test_after_the_first_look_a_place_alone_blocks_only_near_what_changed(
    delta: dict[str, list[tuple[int, int]]] | None, *, blocks: bool
) -> None:
    assert judged(claim(), delta=delta)[0].blocks is blocks


def test_what_blocked_before_and_was_not_repaired_blocks_wherever_it_lies() -> None:
    assert judged(claim(), before=(known(),), delta={})[0].blocks


def test_advice_does_not_grow_into_a_demand_by_being_repeated() -> None:
    assert not judged(claim(), before=(known(blocks=False),), delta={})[0].blocks


def test_a_confirmed_finding_blocks_in_any_round_wherever_it_lies() -> None:
    assert judged(claim(), proof="confirmed", delta={})[0].blocks


# --- the verdict ------------------------------------------------------------------------------------------------------

BLOCKING = Finding(id="F1", severity="major", path="a", line=1, evidence="located", since=1, blocks=True)
ADVICE = Finding(id="F2", severity="major", path="a", line=1, evidence="unfounded", since=1, blocks=False)
MET = CriterionResult(id="c1", met=True, by="relay")
UNMET = CriterionResult(id="c2", met=False, by="relay")
DENIED = CriterionResult(id="c3", met=False, by="judge")
OPEN = CriterionResult(id="c4", met=False, by="nobody")


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("claimed", ["approve", "revise", "blocked"])
@pytest.mark.parametrize(
    ("found", "criteria", "red"),
    [([BLOCKING], [], False), ([], [UNMET], False), ([], [DENIED, OPEN], False), ([ADVICE], [MET], True)],
)
def test_what_blocks_makes_a_revision_whatever_the_agent_claims(
    found: list[Finding], criteria: list[CriterionResult], claimed: Verdict, *, red: bool, last: bool
) -> None:
    reply = JudgeReply(verdict=claimed, nonce="")  # type: ignore[arg-type]
    assert findings.verdict(reply, found, criteria, red=red, last=last) == "revise"


@pytest.mark.parametrize(
    ("claimed", "criteria", "last", "verdict"),
    [
        ("approve", [MET], True, "approve"),
        ("approve", [], False, "approve"),
        ("approve", [MET, OPEN], True, "inconclusive"),
        ("revise", [], False, "approve"),
        ("revise", [MET], True, "inconclusive"),
        ("blocked", [], False, "blocked"),
        ("blocked", [MET], True, "blocked"),
        ("blocked", [OPEN], True, "blocked"),
    ],
)
def test_where_nothing_blocks_the_claim_decides_as_far_as_it_can(
    claimed: Verdict, criteria: list[CriterionResult], verdict: Verdict, *, last: bool
) -> None:
    reply = JudgeReply(verdict=claimed, nonce="")  # type: ignore[arg-type]
    assert findings.verdict(reply, [ADVICE], criteria, red=False, last=last) == verdict


def test_an_approval_that_rests_on_a_place_that_is_not_there_is_none() -> None:
    reply = JudgeReply(verdict="approve", nonce="")
    assert findings.verdict(reply, [], [MET], red=False, last=True, rests=False) == "inconclusive"
    assert findings.verdict(reply, [BLOCKING], [MET], red=False, last=True, rests=False) == "revise"
