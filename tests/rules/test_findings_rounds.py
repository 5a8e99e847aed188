"""What becomes of findings over rounds: new, persisting, back, born of a fix; fixed, withdrawn, kept by Relay."""

import msgspec
import pytest

from relay.rules import findings
from tests.findings import claim, judged, known


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
        (None, True, "", "fixed"),
        ((5, 5), False, "", "fixed"),
        ((5, 5), None, "", "withdrawn"),
        ((5, 5), True, "", None),
        ((5, 5), True, "on purpose", "withdrawn"),
        ((5, 5), False, "on purpose", "fixed"),
    ],
)
def test_a_finding_that_is_named_no_more_is_fixed_or_withdrawn_or_stays(
    lines: tuple[int, int] | None, dispute: str, how: str | None, *, again: bool | None
) -> None:
    one = msgspec.structs.replace(known(), dispute=dispute)
    assert findings.settlement(one, lines, again=again) == how


def test_a_finding_about_the_whole_tree_has_no_quote_that_could_be_gone() -> None:
    assert findings.settlement(known(quote=""), None, again=True) is None
    assert findings.settlement(known(quote=""), None, again=False) == "fixed"


def test_only_open_findings_with_evidence_are_missed() -> None:
    shown = msgspec.structs.replace(known("F1"), evidence="located")
    others = (known("F2"), msgspec.structs.replace(shown, id="F3", open=False))
    assert [one.id for one in findings.unnamed((shown, *others), judged(claim()))] == ["F1"]
    assert findings.unnamed((shown,), judged(claim(), before=(shown,))) == []


def test_a_finding_that_is_kept_blocks_if_it_is_grave() -> None:
    one = findings.kept(known(), (7, 7))
    assert (one.blocks, one.kept, one.line, one.evidence, one.state) == (True, True, 7, "confirmed", "persisting")
    assert not findings.kept(msgspec.structs.replace(known(), severity="minor"), None).blocks
