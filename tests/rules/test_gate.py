"""No note, no start: each thing that is missing or does not match refuses, with exit 6 and the file's name."""

import msgspec
import pytest

from relay.errors import Exit, RelayError
from relay.rules import gate
from relay.terms import Receipt
from tests.receipts import relay, told, work

RUN = relay().run
RECEIPT = msgspec.structs.replace(told(work())[0], note_sha256="0e", reply_sha256="4e")
WHOLE = gate.Seen(
    leg="01-implement",
    receipt_path="legs/01-implement/receipt.json",
    note_path="legs/01-implement/note.md",
    reply_path="legs/01-implement/reply.json",
    receipt=RECEIPT,
    note_sha256="0e",
    note_run=RUN,
    note_leg="01-implement",
    note_written_at=RECEIPT.ended,
    note_problem="",
    reply_sha256="4e",
    head=RECEIPT.head,
    head_at_ref=RECEIPT.head,
    seconds_ahead=-5.0,
)


def test_a_leg_that_is_whole_lets_the_next_one_start() -> None:
    gate.check([WHOLE, WHOLE], RUN)
    gate.check([], RUN)


@pytest.mark.parametrize(
    ("fault", "file", "words"),
    [
        ({"receipt": None}, "receipt.json", "has no receipt"),
        ({"note_sha256": None}, "note.md", "the note is missing"),
        ({"note_sha256": None, "note_problem": "`note.md` is not a plain file"}, "note.md", "not a plain file"),
        ({"note_sha256": "edited"}, "note.md", "not the one its receipt names by hash"),
        ({"note_run": "261128-0900-other", "note_sha256": "other"}, "note.md", "belongs to run `261128-0900-other`"),
        ({"note_problem": "the note cannot be read: torn"}, "note.md", "cannot be read: torn"),
        ({"note_leg": "02-review"}, "note.md", "the leg and the time"),
        ({"note_written_at": "2026-11-29T00:00:00Z"}, "note.md", "the leg and the time"),
        ({"note_written_at": None}, "note.md", "the leg and the time"),
        ({"seconds_ahead": 3 * 24 * 3600.0}, "note.md", "written in the future"),
        ({"reply_sha256": "edited"}, "reply.json", "the reply is not the one"),
        ({"reply_sha256": None}, "reply.json", "the reply is not the one"),
        ({"head": None}, "receipt.json", "is not in the repository"),
        ({"head_at_ref": "f" * 40}, "receipt.json", "points at another commit"),
    ],
)
def test_the_gate_refuses_and_names_the_file(fault: dict[str, object], file: str, words: str) -> None:
    with pytest.raises(RelayError) as refused:
        gate.check([WHOLE, msgspec.structs.replace(WHOLE, **fault)], RUN)
    assert refused.value.exit_code == Exit.GATE
    assert f"`legs/01-implement/{file}`" in refused.value.message
    assert words in refused.value.message
    assert f"relay note rebuild {RUN}/01-implement" in refused.value.hint


def test_a_clock_that_was_stepped_back_by_hours_is_no_reason_to_refuse() -> None:
    gate.check([msgspec.structs.replace(WHOLE, seconds_ahead=5 * 3600.0)], RUN)


def test_a_leg_without_a_reply_has_none_on_disk_either() -> None:
    silent: Receipt = msgspec.structs.replace(RECEIPT, reply_sha256=None)
    gate.check([msgspec.structs.replace(WHOLE, receipt=silent, reply_sha256=None)], RUN)


def test_a_ref_that_somebody_removed_does_not_matter_while_the_commit_is_there() -> None:
    gate.check([msgspec.structs.replace(WHOLE, head_at_ref=None)], RUN)


def test_a_judge_has_no_ref_to_match() -> None:
    judging = msgspec.structs.replace(RECEIPT, kind="judge")
    gate.check([msgspec.structs.replace(WHOLE, receipt=judging, head_at_ref="f" * 40)], RUN)
