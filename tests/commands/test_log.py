"""What an agent said, while it says it and afterwards."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.world import SAFETY, World


@pytest.fixture
def waiting(world: World) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a run whose implementer has spoken and waits in the middle of its leg."""
    for name in ("spoken", "go"):
        os.mkfifo(world.folder / name)
    text = f"echo one; echo > {world.folder}/spoken; read line < {world.folder}/go; echo two"
    text += "; sed -i 's/a - b/a + b/' calc.py"
    world.shell("implementer", text, phase="implement", reply="exit")
    world.save()
    run = world.start("run", world.spec(), "--until", "implement")
    subprocess.run(["cat", world.folder / "spoken"], check=True, stdout=subprocess.DEVNULL, timeout=SAFETY)
    yield run
    run.terminate()
    run.communicate(timeout=SAFETY)


def _go_on(world: World, run: "subprocess.Popen[bytes]") -> None:
    """Let the agent go on, and wait for the end of the run."""
    subprocess.run(["sh", "-c", f"echo > {world.folder}/go"], check=True, timeout=SAFETY)
    run.communicate(timeout=SAFETY)


def _said(world: World, *lines: str) -> None:
    (world.legs()[-1] / "transcript.jsonl").write_text("".join(f"{line}\n" for line in lines))


def test_what_an_agent_said_is_plain_text(world: World) -> None:
    world.shell("implementer", "printf 'a\\033[31mb\\n'; printf '\\033]0;title\\007c'", phase="implement", reply="exit")
    world.save()
    world.inside("run", world.spec())
    ran = world.inside("log", "task/1")
    assert (ran.code, ran.out) == (0, "ab\nc\n")
    assert world.inside("show", "task/1", "log").out == "ab\nc\n"


def test_the_newest_leg_is_meant_if_none_is_named(accepted: World) -> None:
    _said(accepted, '{"type": "output", "at": "", "text": "from the last leg"}')
    assert accepted.inside("log", "task").out == "from the last leg\n"
    assert accepted.inside("log", "task/1").out == ""


def test_pieces_are_put_together_and_what_is_torn_is_named(accepted: World) -> None:
    _said(
        accepted,
        '{"type": "output", "at": "", "text": "half a l"}',
        '{"type": "output", "at": "", "text": "ine\\nand"}',
        '{"type": "gap", "dropped": 7}',
        '{"type": "output", "at"',
        "[]",
        '{"type": "output", "at": "", "text": "the end"}',
        '{"type": "output", "at": "", "te',
    )
    lines = [line for line in accepted.inside("log").out.splitlines() if line]
    torn = "[a line of the transcript cannot be read]"
    assert lines == ["half a line", "and", "[7 bytes left out]", torn, torn, "the end", torn]


def test_a_leg_without_a_transcript_says_so(accepted: World) -> None:
    accepted.inside("reject", "task", "--why", "no")
    ran = accepted.inside("log", "task/6")
    assert ran.code == 2
    assert "leg `06-reject` has no transcript" in ran.err
    assert accepted.inside("log", "task/6", "-f").code == 2


def test_following_ends_when_the_leg_is_sealed_and_misses_nothing(
    world: World, waiting: "subprocess.Popen[bytes]"
) -> None:
    log = world.start("log", "-f")
    assert log.stdout is not None
    assert log.stdout.readline() == b"one\n"
    _go_on(world, waiting)
    assert log.communicate(timeout=SAFETY)[0] == b"two\n"
    assert log.returncode == 0
    assert world.receipts()[0]["ended_by"] == "reply"


def test_following_ends_when_its_reader_goes_although_the_agent_is_silent(
    world: World, waiting: "subprocess.Popen[bytes]"
) -> None:
    log = world.start("log", "-f")
    assert log.stdout is not None
    assert log.stdout.readline() == b"one\n"
    log.stdout.close()
    assert log.wait(timeout=SAFETY) == 0
    assert world.receipts() == []
    assert b"Traceback" not in log.communicate(timeout=SAFETY)[1]
    _go_on(world, waiting)


def test_following_ends_when_the_runner_was_killed(world: World, waiting: "subprocess.Popen[bytes]") -> None:
    log = world.start("log", "-f")
    assert log.stdout is not None
    assert log.stdout.readline() == b"one\n"
    waiting.kill()
    waiting.communicate(timeout=SAFETY)
    assert log.communicate(timeout=SAFETY)[0] == b""
    assert log.returncode == 0
    assert world.inside("stop", "task").code == 0


def test_what_a_backend_told_of_turns_is_shown_in_words_of_relay_and_raw_as_it_came(accepted: World) -> None:
    _said(
        accepted,
        '{"type": "text", "turn": 1, "text": "I look."}',
        '{"type": "call", "turn": 1, "tool": "bash", "id": "a", "text": "{\\"command\\": \\"ls -l\\"}"}',
        '{"type": "result", "turn": 1, "tool": "bash", "id": "a", "text": "' + "\\n".join("abcdefghijklmno") + '"}',
        '{"type": "result", "turn": 1, "tool": "read", "id": "b", "ok": false, "text": "There is none."}',
        '{"type": "wait", "turn": 2, "text": "2.0 s: overloaded"}',
        '{"type": "line", "text": "{\\"its\\": \\"own\\"}"}',
        '{"type": "usage", "turn": 1, "usage": {"input": 5}}',
    )
    lines = accepted.inside("log").out.splitlines()
    assert lines[:3] == ["I look.", "$ bash ls -l", "    a"]
    assert lines[-3:] == ["    ... 3 more lines", "    (failed) There is none.", "(waits) 2.0 s: overloaded"]
    assert accepted.inside("log", "--raw").out == '{"its": "own"}\n'
