"""The file that Codex writes of its session, as several versions write it, and as an agent might."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from relay.backends.codex_rollout import Session, billed
from relay.backends.purse import Purse
from relay.terms import Agent, Limits, Told

THREAD = "01a228cb-0000-7000-8000-000000000000"
CALL = ("response_item", {"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "c"})
USED = {"input_tokens": 1000, "cached_input_tokens": 400, "output_tokens": 30, "reasoning_output_tokens": 10}

Line = tuple[str, Mapping[str, Any]]


class Written:
    """A session whose file the test writes."""

    def __init__(self, root: Path, limits: Limits, window: int | None, share: float | None) -> None:
        self.told: list[Told] = []
        self.purse = Purse(limits, billed(Agent(name="codex", backend="codex", vendor="openai", model="gpt-5.5")))
        self.session = Session(self.told.append, self.purse, window, share)
        self.sessions = root / "sessions"
        self.path = self.sessions / f"2026/11/30/rollout-2026-11-30T00-00-00-{THREAD}.jsonl"
        self.path.parent.mkdir(parents=True)

    def write(self, *lines: Line) -> None:
        """Add lines to the file, and have it read."""
        with self.path.open("a") as stream:
            for kind, payload in lines:
                stream.write(json.dumps({"timestamp": "", "type": kind, "payload": payload}) + "\n")
        self.session.read(self.sessions, THREAD)

    def over(self) -> tuple[str, str] | None:
        """Return why the leg should end, if it should."""
        over = self.session.over
        return (over.ended_by, str(over)) if over else None


def begun(root: Path, limits: Limits | None = None, *, window: int | None = None, share: float | None = 0.6) -> Written:
    return Written(root, limits or Limits(seconds=100), window, share)


def counted(total: int, last: Mapping[str, int] = USED) -> Line:
    """Return how versions without a record of each answer say what was used, in all and last."""
    info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": last, "model_context_window": 100_000}
    return "event_msg", {"type": "token_count", "info": info, "rate_limits": None}


def test_older_versions_say_what_an_answer_used_after_the_fact_and_again(tmp_path: Path) -> None:
    one = begun(tmp_path)
    one.write(CALL, counted(1000), counted(1000), counted(2000))
    used = one.purse.usage
    assert (used.turns, used.input, used.cached, used.output, used.reasoning) == (2, 2000, 800, 60, 20)


def test_where_each_answer_has_a_record_it_alone_counts(tmp_path: Path) -> None:
    one = begun(tmp_path)
    one.write(CALL, ("token_usage_record", {"usage": USED}), counted(1000), ("token_usage_record", {"usage": USED}))
    assert (one.purse.usage.turns, one.purse.usage.input) == (2, 2000)


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    one = begun(tmp_path)
    line = json.dumps({"type": "token_usage_record", "payload": {"usage": USED}}) + "\n"
    for half in (line[:40], line[40:]):
        with one.path.open("a") as stream:
            stream.write(half)
        one.session.read(one.sessions, THREAD)
    assert one.purse.usage.turns == 1


def test_a_history_that_was_rewritten_is_the_end_of_the_room(tmp_path: Path) -> None:
    one = begun(tmp_path)
    one.write(("compacted", {"message": "in short"}), CALL, ("token_usage_record", {"usage": USED}))
    assert (one.over() or ("", ""))[0] == "handover"


def test_the_window_is_the_persons_then_the_programs(tmp_path: Path) -> None:
    said: Line = ("event_msg", {"type": "task_started", "model_context_window": 1500})
    first, second = begun(tmp_path / "a"), begun(tmp_path / "b", window=100_000)
    for one in (first, second):
        one.write(said, CALL, ("token_usage_record", {"usage": USED}))
    assert first.over() == ("handover", "its context holds 1030 of 1500 tokens")
    assert second.over() is None


def test_a_note_is_written_within_a_few_turns_or_not_at_all(tmp_path: Path) -> None:
    one = begun(tmp_path, Limits(seconds=100, turns=1))
    record: Line = ("token_usage_record", {"usage": USED})
    one.write(CALL, record)
    assert one.over() == ("budget", "all 1 turns of this leg are used")
    one.session.close()
    one.write(*[CALL, record] * 5)
    assert one.over() is None
    one.write(CALL, record)
    assert one.over() == ("no-reply", "did not write its note within 6 turns")


def test_a_message_counts_until_something_is_called(tmp_path: Path) -> None:
    one = begun(tmp_path)
    said: Line = (
        "response_item",
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    )
    one.write(said)
    assert one.session.message == "done"
    one.write(CALL)
    assert one.session.message is None


@pytest.mark.parametrize("said", ["bwrap: loopback: Failed", "I ran bwrap: setting up uid map: no\nand more"])
def test_a_command_that_speaks_of_bubblewrap_is_no_broken_sandbox(tmp_path: Path, said: str) -> None:
    one = begun(tmp_path)
    text = f"Process exited with code 1\nOutput:\n{said}\n"
    one.write(CALL, ("response_item", {"type": "function_call_output", "call_id": "c", "output": text}))
    assert one.over() is None


def test_what_is_no_session_is_passed_over(tmp_path: Path) -> None:
    one = begun(tmp_path)
    one.path.write_bytes(
        b'null\n[]\n3\n"x"\n{"type": 1}\n{"type": "event_msg", "payload": []}\n\xff\xfe\n{"type": "compacted"\n'
        b'{"type": "token_usage_record", "payload": {"usage": {"input_tokens": "many", "output_tokens": -5}}}\n'
        b'{"type": "event_msg", "payload": {"type": "token_count", "info": 7, "rate_limits": [1]}}\n'
        b'{"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": 5}}\n'
        b'{"type": "response_item", "payload": {"type": "x_call_output", "output": {"a": 1}}}\n'
        b'{"type": "event_msg", "payload": {"type": "item_completed", "item": {"type": "CommandExecution", '
        b'"parsed_cmd": [1, {"type": "read"}]}}}\n'
    )
    one.session.read(one.sessions, THREAD)
    assert (one.purse.usage.input, one.purse.usage.output) == (0, 0)


@pytest.mark.parametrize("plant", ["pipe", "link", "folder"])
def test_a_session_that_is_no_plain_file_is_not_read_and_not_kept(tmp_path: Path, plant: str) -> None:
    one = begun(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"type": "token_usage_record", "payload": {"usage": USED}}) + "\n")
    if plant == "pipe":
        os.mkfifo(one.path)
    elif plant == "link":
        one.path.symlink_to(secret)
    else:
        one.path.mkdir()
    one.session.read(one.sessions, THREAD)
    one.session.keep(tmp_path / "kept")
    assert one.purse.usage.turns == 0
    assert not (tmp_path / "kept").exists() or (tmp_path / "kept").read_bytes() == b""
