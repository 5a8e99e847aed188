"""What is kept of an agent's work while it works: lines without secrets, bounded, and its program's own session."""

import json
import os
import secrets
from pathlib import Path

import pytest

from relay.host import redact
from relay.record import transcript
from relay.record.transcript import Transcript, carry
from relay.terms import Told, Usage


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_is_told_is_a_line_that_says_only_what_there_is_to_say(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    with Transcript(path, redact.Redactor({})) as kept:
        kept.tell(Told(type="call", turn=1, tool="bash", id="a", text="ls"))
        kept.write(b"a\n")
        kept.tell(Told(type="result", turn=1, id="a", text="", ok=False))
        kept.tell(Told(type="usage", usage=Usage(input=7), cost_microusd=0))
    lines = [{name: value for name, value in line.items() if name != "at"} for line in _lines(path)]
    assert lines[0] == {"type": "call", "turn": 1, "tool": "bash", "id": "a", "text": "ls"}
    assert lines[1] == {"type": "output", "text": "a\n"}
    assert lines[2] == {"type": "result", "turn": 1, "id": "a", "ok": False}
    assert lines[3]["cost_microusd"] == 0


def test_a_flood_of_events_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    with Transcript(path, redact.Redactor({})) as kept:
        for number in range(8):
            kept.tell(Told(type="text", turn=number, text="x" * (1 << 20)))
    lines = _lines(path)
    assert lines[0].get("turn", 0) == 0
    assert lines[-1]["turn"] == 7
    assert [line["type"] for line in lines].count("gap") == 1
    assert path.stat().st_size < transcript.HEAD + 2 * (1 << 20) + transcript.TAIL


def test_a_secret_that_is_learned_while_it_goes_on_is_taken_out_too(tmp_path: Path) -> None:
    drawn = secrets.token_urlsafe(24)
    redactor = redact.Redactor({})
    path = tmp_path / "transcript.jsonl"
    with Transcript(path, redactor) as kept:
        redactor.learn({"login": drawn})
        kept.tell(Told(type="text", text=f"it is {drawn}"))
        kept.write(f"and {drawn}\n".encode())
    assert drawn not in path.read_text()
    assert path.read_text().count("[redacted login]") == 2


def test_a_session_is_moved_into_the_ledger_without_its_secrets(tmp_path: Path) -> None:
    drawn = secrets.token_urlsafe(24)
    source, target = tmp_path / "session.jsonl", tmp_path / "kept.jsonl"
    source.write_text(f'{{"said": "{drawn}"}}\n' * 3)
    carry(source, target, redact.Redactor({"key": drawn}))
    assert not source.exists()
    assert target.read_text() == '{"said": "[redacted key]"}\n' * 3
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["link", "fifo", "nothing"])
def test_what_is_no_session_file_is_not_carried(tmp_path: Path, kind: str) -> None:
    source, target = tmp_path / "session.jsonl", tmp_path / "kept.jsonl"
    (tmp_path / "private").write_text("a person's own")
    if kind == "link":
        source.symlink_to(tmp_path / "private")
    elif kind == "fifo":
        os.mkfifo(source)
    carry(source, target, redact.Redactor({}))
    assert not target.exists()
    assert (tmp_path / "private").read_text() == "a person's own"
