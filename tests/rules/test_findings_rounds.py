"""What becomes of findings over rounds: new, persisting, back, born of a fix; fixed, withdrawn, kept by Relay."""

import msgspec
import pytest

from relay.rules import findings
from relay.rules.findings import Again
from relay.terms import Proof, Severity
from tests.findings import claim, judged, known

SHOWS, GREEN, UNKNOWN = Again(did="shows", lines=(6, 6)), Again(did="green"), Again(did="unknown", why="exit 127")


def test_a_finding_is_new_or_persists_or_has_come_back_or_was_born_of_a_fix() -> None:
    ended = msgspec.structs.replace(known(), settled=True)
    assert judged(claim())[0].state == "new"
    assert judged(claim(), mended={"a.py": [(50, 50)]})[0].state == "born-of-a-fix"
    assert judged(claim(), mended={"a.py": [(51, 60)], "b.py": [(50, 50)]})[0].state == "new"
    assert judged(claim(), before=(known(),), mended={"a.py": [(50, 50)]})[0].state == "persisting"
    assert judged(claim(), before=(ended,))[0].state == "regression"


def test_what_came_back_blocks_again_wherever_it_lies() -> None:
    ended = msgspec.structs.replace(known(), settled=True, open=False)
    assert judged(claim(), before=(ended,), delta={})[0].blocks


@pytest.mark.parametrize(
    ("lines", "again", "dispute", "how"),
    [
        (None, None, "", "fixed"),
        ((5, 5), None, "", "withdrawn"),
        (None, SHOWS, "", None),
        (None, UNKNOWN, "", None),
        (None, GREEN, "", "fixed"),
        ((5, 5), GREEN, "", "fixed"),
        ((5, 5), SHOWS, "", None),
        ((5, 5), UNKNOWN, "", None),
        ((5, 5), SHOWS, "on purpose", "withdrawn"),
        ((5, 5), UNKNOWN, "on purpose", "withdrawn"),
        ((5, 5), GREEN, "on purpose", "fixed"),
    ],
)
def test_a_finding_that_is_named_no_more_is_fixed_or_withdrawn_or_stays(
    lines: tuple[int, int] | None, dispute: str, how: str | None, again: Again | None
) -> None:
    one = msgspec.structs.replace(known(), dispute=dispute)
    assert findings.settlement(one, lines, again) == how


def test_a_finding_about_the_whole_tree_has_no_quote_that_could_be_gone() -> None:
    assert findings.settlement(known(quote=""), None, SHOWS) is None
    assert findings.settlement(known(quote=""), None, GREEN) == "fixed"


@pytest.mark.parametrize("again", [SHOWS, UNKNOWN])
@pytest.mark.parametrize("proof", ["located", "unfounded"])
@pytest.mark.parametrize(("severity", "stays"), [("nit", "major"), ("minor", "major"), ("blocker", "blocker")])
def test_a_confirmed_finding_stays_what_it_is_whatever_its_judge_calls_it_until_its_repro_is_green(
    severity: Severity, stays: Severity, proof: Proof, again: Again
) -> None:
    again = msgspec.structs.replace(again, lines=(60, 61))
    claims = claim(severity=severity, same_as="F0", line=3, quote="x"), claim(severity=severity)
    for one in claims:
        [found] = judged(one, proof=proof, before=(known(),), delta={}, again={"F0": again})
        assert (found.id, found.severity, found.path, found.line) == ("F0", stays, "a.py", 60)
        assert (found.evidence, found.blocks, found.state, found.kept) == ("confirmed", True, "persisting", True)


def test_a_claim_that_is_confirmed_itself_makes_a_finding_no_lighter_until_the_first_repro_is_green() -> None:
    lighter = claim(severity="nit", quote="return b - a", same_as="F0")
    [found] = judged(lighter, proof="confirmed", before=(known(),), again={"F0": SHOWS})
    assert (found.id, found.severity, found.line, found.blocks, found.kept) == ("F0", "major", 50, True, False)
    [found] = judged(lighter, proof="confirmed", before=(known(),), again={"F0": GREEN})
    assert (found.id, found.severity, found.blocks) == ("F0", "nit", False)


def test_once_its_repro_is_green_the_judges_word_counts_again() -> None:
    [found] = judged(claim(severity="nit"), before=(known(),), again={"F0": GREEN})
    assert (found.severity, found.evidence, found.kept) == ("nit", "located", False)


def test_only_open_findings_with_evidence_are_missed() -> None:
    shown = msgspec.structs.replace(known("F1"), evidence="located")
    others = (known("F2"), msgspec.structs.replace(shown, id="F3", open=False))
    assert [one.id for one in findings.unnamed((shown, *others), judged(claim()))] == ["F1"]
    assert findings.unnamed((shown,), judged(claim(), before=(shown,))) == []


def test_a_finding_that_is_kept_blocks_if_it_is_grave() -> None:
    one = findings.kept(known(), (7, 7))
    assert (one.blocks, one.kept, one.line, one.evidence, one.state) == (True, True, 7, "confirmed", "persisting")
    assert not findings.kept(msgspec.structs.replace(known(), severity="minor"), None).blocks
