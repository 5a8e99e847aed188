"""What an agent hands over is read where it was to be put, and what it says obeys nobody's terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.loop.faults import stopped, through, untouched
from tests.world import CHECKOUT, FIXED, SAFETY, World

PRIVATE = "words that a person wrote for themselves"
SWAP = """io=$(dirname "$RELAY_REPLY"); mv "$io" "$io.away"; ln -s %s "$io"
"""
ESCAPES = "\x1b[2Jcleared\x1b]0;title\x07 \x9b31mred \x1bPq\x1b\\\\ \x7f\x08 \x1b]52;c;cm0=\x07 \x9d0;x\x9c"
"""A cleared screen, titles, colours in seven and eight bits, a device string, a rubout, a clipboard."""
OBEYED = set("\x1b\x07\x08\x7f\x9b\x9c\x9d")


@pytest.fixture
def private(world: World) -> Path:
    """Return a folder of the person's in which a file is called as a reply is."""
    folder = world.folder / "private"
    folder.mkdir()
    (folder / "reply.json").write_text(json.dumps({"status": "done", "summary": PRIVATE}), encoding="utf-8")
    return folder


def _in_ledger(world: World, text: str) -> list[str]:
    ledger = world.root / ".git" / "relay"
    return [str(path) for path in ledger.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_folder_swapped_for_a_link_gives_no_reply_and_nothing_of_another_file(world: World, private: Path) -> None:
    world.shell("implementer", SWAP % private, phase="implement")
    world.save()
    with untouched(world):
        stopped(world.relay("run", world.spec()), 4, "leads through a link", "relay resume")
    assert [receipt["ended_by"] for receipt in world.receipts()] == ["no-reply"] * len(world.receipts())
    assert _in_ledger(world, PRIVATE) == []
    assert (private / "reply.json").exists(), "what a link leads to is never removed"


def test_an_agent_that_was_killed_left_no_reply_behind_a_link_either(world: World, private: Path) -> None:
    started = world.folder / "started"
    world.shell("implementer", f"{SWAP % private}touch {started}; sleep 600", phase="implement")
    world.save()
    running = world.start("run", world.spec())
    over = time.monotonic() + SAFETY
    while not started.exists():
        assert running.poll() is None
        assert time.monotonic() < over
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    world.implementer({"calc.py": FIXED})
    world.shell("implementer", "exit 1", phase="implement")
    world.relay("resume")
    assert world.receipts()[0]["ended_by"] == "interrupted"
    assert _in_ledger(world, PRIVATE) == []
    assert (private / "reply.json").exists()


def _terminal(world: World, *argv: str) -> bytes:
    """Run the command line on a terminal that shows colours, and return all that it was sent."""
    own, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "relay", *argv],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    while chunk := _chunk(own):
        said += chunk
    os.close(own)
    assert process.wait(SAFETY) == 0, said
    return said


def _chunk(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side has gone
        return b""


def test_nothing_that_an_agent_says_names_or_prints_moves_a_terminal(world: World) -> None:
    said = json.dumps(ESCAPES)
    world.python(
        "implementer",
        f"""
bad = json.loads({said!r})
sys.stdout.write(bad)
write({{'calc.py': {FIXED!r}, 'odd' + bad.replace('/', '') + '.txt': bad}})
text = json.dumps({{
    'status': 'done', 'summary': bad + 'S', 'decisions': [{{'what': bad + 'D', 'why': bad}}], 'risks': [bad + 'R'],
    'claims': [{{'criterion': bad, 'how': bad + 'C'}}], 'todo': [bad + 'T'], 'dropped': [{{'what': bad, 'why': bad}}],
}}, ensure_ascii=False)
escaped = ''.join('\\\\u%04x' % ord(c) if c < ' ' else c for c in text)  # what JSON allows stands there as it is
pathlib.Path(os.environ['RELAY_REPLY']).write_text(escaped, encoding='utf-8')
""",
        phase="implement",
        vendor="north",
    )
    world.python(
        "review-judge",
        f"""
bad = json.loads({said!r})
found = {{'severity': 'minor', 'title': bad + 'F', 'path': 'calc.py', 'line': 2, 'quote': 'return a + b', 'why': bad}}
reply(verdict='approve', summary=bad, findings=[found])
""",
        phase="review",
        vendor="south",
    )
    ran = world.relay("run", world.spec())
    through(ran)
    assert not OBEYED & set(ran.out + ran.err), ran
    run = world.only_run()
    assert "cleared" in world.text("01-implement", "note.md")
    for command in (
        ("trace", run),
        ("show", run),
        ("show", f"{run}/01-implement"),
        ("show", f"{run}/02-review"),
        *(("show", f"{run}/01-implement", word) for word in ("note", "reply", "receipt", "diff", "log")),
        ("show", f"{run}/02-review", "prompt"),
        ("log", f"{run}/01-implement"),
        ("status",),
        ("verify", run),
    ):
        shown = _terminal(world, *command)
        assert shown, command
        assert not OBEYED & set(shown.decode()), (command, shown)
    for leg in ("01-implement", "02-review"):
        assert not OBEYED & set(world.text(leg, "note.md")), leg
    through(world.relay("approve", run))
    assert not OBEYED & set(world.git("log", "-1", "--format=%B"))


def test_a_question_and_a_problem_move_no_terminal_either(world: World) -> None:
    ask = f"bad = json.loads({json.dumps(ESCAPES)!r})\nreply(status='blocked', question=bad + 'which port?')\n"
    world.python("implementer", ask, phase="implement", vendor="north")
    asked = world.relay("run", world.spec())
    stopped(asked, 4, "which port?")
    assert not OBEYED & set(asked.out + asked.err), asked
    wrong = f"bad = json.loads({json.dumps(ESCAPES)!r})\nreply(**{{'status': 'done', bad.replace(chr(0), ''): bad}})\n"
    world.python("implementer", wrong, phase="implement", vendor="north")
    told = world.relay("answer", world.only_run(), "8080")
    through(told)
    again = world.relay("resume")
    stopped(again, 4)
    assert not OBEYED & set(again.out + again.err), again
