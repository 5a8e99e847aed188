"""Agents that do nothing, fail, flood, hang or leave something running: each ends, is named, and loses nothing."""

import contextlib
import os
import shlex
import signal
import threading
from pathlib import Path

import pytest

from tests.loop.faults import kept, sober, stopped, through, untouched, worktrees
from tests.world import BROKEN, FIXED, SAFETY, World

FIX = f"printf {shlex.quote(FIXED.replace(chr(10), chr(92) + 'n'))} > calc.py"
DONE = """printf '{"status": "done"}' > "$RELAY_REPLY\""""
APPROVE = """printf '{"verdict": "approve", "nonce": "%s"}' "$RELAY_NONCE" > "$RELAY_REPLY\""""
FLOOD = 1 << 30
ROOM = 400 << 20
"""Bytes of memory that Relay may take at most, whatever an agent says; it takes some 60 MB by itself."""


def _worker(world: World, text: str, reply: str = "json") -> None:
    world.shell("implementer", text, phase="implement", reply=reply)
    world.save()


def _judge(world: World, text: str, reply: str = "json") -> None:
    world.shell("review-judge", text, phase="review", reply=reply)
    world.save()


def _ends(world: World) -> list[str]:
    return [f"{receipt['phase']} {receipt['ended_by']}" for receipt in world.receipts()]


def _alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    return False


# --- nothing ------------------------------------------------------------------------------------------------------


def test_a_worker_that_exits_0_without_a_reply_is_asked_three_times_and_then_a_person(world: World) -> None:
    _worker(world, f"{FIX}\nexit 0")
    with untouched(world):
        stopped(world.relay("run", world.spec()), 4, "wrote no reply to `RELAY_REPLY`", "relay resume")
    assert _ends(world) == ["implement no-reply"] * 3
    assert kept(world, "calc.py") == [FIXED] * 3


@pytest.mark.parametrize("reply", ["json", "exit"])
def test_a_worker_that_says_done_and_changed_nothing_is_asked_three_times_and_then_a_person(
    world: World, reply: str
) -> None:
    _worker(world, DONE, reply)
    with untouched(world):
        stopped(world.relay("run", world.spec()), 4, "says done, but nothing changed", "relay resume")
    assert _ends(world) == ["implement reply"] * 3
    assert kept(world, "calc.py") == [BROKEN] * 3


def test_a_worker_that_changes_nothing_where_nothing_was_to_do_is_believed_by_the_commands(world: World) -> None:
    world.commit({"calc.py": FIXED})
    _worker(world, DONE)
    with untouched(world):
        through(world.relay("run", world.spec()))


def test_a_judge_that_exits_0_without_a_reply_is_asked_twice_and_approves_nothing(world: World) -> None:
    _judge(world, "exit 0")
    with untouched(world):
        stopped(world.relay("run", world.spec()), 4, "inconclusive twice", "wrote no reply")
    assert _ends(world) == ["implement reply", "review no-reply", "review no-reply"]
    assert {receipt["verdict"] for receipt in world.receipts()} == {None, "inconclusive"}
    assert kept(world, "calc.py") == [FIXED]


# --- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", ["json", "exit"])
@pytest.mark.parametrize(
    ("end", "code", "ends", "says"),
    [
        ("exit 1", 5, ["implement crash"] * 3, "exited 1"),
        ("exit 126", 4, ["implement setup"], "agent not installed"),
        ("exit 127", 4, ["implement setup"], "agent not installed"),
        ("kill -9 $$", 5, ["implement crash"] * 3, "SIGKILL"),
    ],
)
def test_a_worker_that_fails_is_no_done_and_what_it_wrote_is_kept(
    world: World, end: str, code: int, ends: list[str], says: str, reply: str
) -> None:
    _worker(world, f"echo out of tokens >&2\n{FIX}\n{DONE}\n{end}", reply)
    with untouched(world):
        stopped(world.relay("run", world.spec()), code, says, "relay resume")
    assert _ends(world) == ends
    assert FIXED in kept(world, "calc.py")
    assert "out of tokens" in world.inside("show", f"{world.only_run()}/01-implement", "log").out


@pytest.mark.parametrize("reply", ["json", "exit"])
@pytest.mark.parametrize("end", ["exit 126", "exit 127", "kill -9 $$"])
def test_a_judge_that_could_not_judge_is_inconclusive_and_no_finding(world: World, end: str, reply: str) -> None:
    _judge(world, f"{APPROVE}\n{end}", reply)
    with untouched(world):
        stopped(world.relay("run", world.spec()), 4, "inconclusive twice")
    assert _ends(world) == ["implement reply", "review no-reply", "review no-reply"]
    assert [receipt["findings"] for receipt in world.receipts()] == [[], [], []]


def test_a_judge_that_fails_after_it_approved_approved_nothing(world: World) -> None:
    _judge(world, f"{APPROVE}\nexit 1")
    with untouched(world):
        stopped(world.relay("run", world.spec()), 4, "inconclusive twice", "exited 1")
    assert {receipt["verdict"] for receipt in world.receipts()} == {None, "inconclusive"}


def test_a_program_that_goes_away_during_the_run_is_a_matter_of_set_up(world: World) -> None:
    judge = world.folder / "agents" / "review-judge.sh"
    _judge(world, APPROVE)
    world.shell("implementer", f"{FIX}; rm {judge}", phase="implement", reply="exit")
    world.save()
    with untouched(world):
        stopped(world.relay("run", world.spec()), 4, "not there, or not executable")
    assert FIXED in kept(world, "calc.py")


def test_resume_tries_again_what_failed(world: World) -> None:
    _worker(world, f"test -e {world.folder}/paid || exit 1\n{FIX}", "exit")
    with untouched(world):
        stopped(world.relay("run", world.spec()), 5, "exited 1")
        (world.folder / "paid").touch()
        through(world.relay("resume"))
    assert _ends(world) == [
        *["implement crash"] * 3,
        "None None",
        "implement reply",
        "review reply",
        "acceptance reply",
    ]


# --- noise and time -----------------------------------------------------------------------------------------------


def test_an_agent_that_floods_its_output_is_ended_and_fills_neither_memory_nor_disk(world: World) -> None:
    _worker(world, f"{FIX}\nexec head -c {FLOOD} /dev/zero", "exit")
    process = world.start("run", world.spec())
    said: list[bytes] = []
    assert process.stderr is not None
    reader = threading.Thread(target=lambda stream=process.stderr: said.append(stream.read()), daemon=True)
    reader.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    reader.join(SAFETY)
    process.communicate()
    assert process.returncode == 5
    assert b"wrote more than" in said[0]
    assert used.ru_maxrss << 10 < ROOM
    assert _ends(world) == ["implement output"]
    assert sum(path.stat().st_size for path in world.legs()[0].iterdir()) < 64 << 20
    assert kept(world, "calc.py") == [FIXED]


def test_an_agent_that_talks_much_but_not_too_much_is_heard_to_the_end(world: World) -> None:
    _worker(world, f"head -c 20000000 /dev/urandom\n{FIX}\necho the last word", "exit")
    with untouched(world):
        through(world.relay("run", world.spec()))
    transcript = (world.legs()[0] / "transcript.jsonl").read_text()
    assert '"gap"' in transcript
    assert "the last word" in transcript.splitlines()[-1]


def test_an_agent_that_prints_terminal_controls_moves_nobodys_cursor(world: World) -> None:
    _worker(world, "printf '\\033]0;title\\007\\033[2J\\033[31mred\\n'; exit 1", "exit")
    ran = world.relay("run", world.spec())
    stopped(ran, 5, "exited 1")
    shown = world.relay("show", f"{world.only_run()}/01-implement", "log")
    assert "red" in shown.out
    assert not {"\033", "\007"} & set(ran.out + ran.err + shown.out + shown.err)


LEFT = {
    "in its group": "sleep 600 & echo $! > {pid}",
    "in another session": "setsid sh -c 'echo $$ > {pid}; exec sleep 600' &",
    "deaf": "(trap '' TERM; sh -c 'echo $PPID' > {pid}; while :; do sleep 60; done) &",
}


@pytest.mark.parametrize("how", LEFT)
def test_what_an_agent_leaves_running_does_not_outlive_its_leg(world: World, how: str) -> None:
    pid = world.folder / "pid"
    _worker(world, f"{LEFT[how].format(pid=pid)}\nwhile ! test -s {pid}; do :; done\n{FIX}", "exit")
    with untouched(world):
        through(world.relay("run", world.spec()))
    assert not _alive(int(pid.read_text()))
    assert worktrees() == []


def test_an_agent_that_obeys_no_signal_is_killed_when_its_time_is_up(world: World) -> None:
    world.phases["implement"]["minutes"] = 0.02
    _worker(world, f"echo $$ > {world.folder}/pid\ntrap '' INT TERM HUP\n{FIX}\nwhile :; do sleep 60; done")
    with untouched(world):
        stopped(world.relay("run", world.spec()), 5, "did not end within 1.2 s", "relay resume")
    assert not _alive(int((world.folder / "pid").read_text()))
    assert _ends(world) == ["implement timeout"]
    assert kept(world, "calc.py") == [FIXED]


def test_a_judge_whose_time_is_up_approved_nothing(world: World) -> None:
    world.phases["review"]["minutes"] = 0.02
    _judge(world, f"{APPROVE}\nexec sleep 600")
    with untouched(world):
        ran = world.relay("run", world.spec())
    sober(ran)
    assert ran.code in {4, 5}
    assert "did not end within 1.2 s" in ran.err
    assert "approve" not in {receipt["verdict"] for receipt in world.receipts()}


def test_an_agent_that_kills_relay_leaves_a_run_that_resumes(world: World) -> None:
    _worker(world, f"{FIX}\ntest -e {world.folder}/once || {{ touch {world.folder}/once; kill -9 $PPID; }}", "exit")
    with untouched(world):
        assert world.relay("run", world.spec()).code == -signal.SIGKILL
        through(world.relay("resume"))
    assert _ends(world) == ["implement interrupted", "implement reply", "review reply", "acceptance reply"]


def test_an_agent_gets_none_of_relays_python_and_only_the_variables_that_are_named(world: World) -> None:
    world.shell("implementer", f"env > {world.folder}/env\n{FIX}", phase="implement", reply="exit", env=["API_KEY"])
    world.save()
    foreign = {"API_KEY": "k", "GIT_DIR": "/nowhere", "VIRTUAL_ENV": "/nowhere", "RELAY_RUN": "another"}
    through(world.relay("run", world.spec(), env=foreign))
    seen = dict(line.partition("=")[::2] for line in (world.folder / "env").read_text().splitlines())
    assert seen["API_KEY"] == "k"
    assert seen["RELAY_RUN"] == world.only_run()
    assert not {"PYTHONPATH", "VIRTUAL_ENV", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} & seen.keys()
