"""A program takes the leg: what it is given, and what each of its endings means."""

import hashlib
import os
import secrets
from pathlib import Path

import msgspec
import pytest

from relay.backends import BACKENDS, command, named
from relay.errors import Exit, RelayError
from relay.terms import Agent, Ask, JudgeReply, Kind, Limits, Process, Taken, WorkReply
from tests.backends.lanes import lane

SAFE = Limits(seconds=60)
NONCE = secrets.token_hex(16)
"""Its own in each process of the tests: whatever carries it is ended with the program."""


def agent(*argv: str, by_exit: bool = False) -> Agent:
    return Agent(name="tool", backend="command", vendor="mechanical", command=argv, reply="exit" if by_exit else "json")


def program(folder: Path, script: str, name: str = "tool") -> str:
    """Make a shell program outside the leg's folder and return its absolute path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def ask(root: Path, who: Agent, kind: Kind, limits: Limits = SAFE) -> Ask:
    folder = root / "leg"
    folder.mkdir(exist_ok=True)
    reply = root / "leg.io" / "reply.json"
    reply.parent.mkdir(exist_ok=True)
    return Ask(
        run="261129-0230-fix-login",
        leg="01-implement",
        phase="implement" if kind == "work" else "review",
        kind=kind,
        boundary="implement" if kind == "work" else "verify-only",
        round=1,
        turn=1,
        nonce=NONCE,
        prompt="make it so, naïvely",
        folder=str(folder),
        reply_path=str(reply),
        limits=limits,
        agent=who,
        env={"RELAY_REPLY": str(reply), "RELAY_NONCE": NONCE, "RELAY_KIND": kind},
    )


def take(asked: Ask) -> Taken:
    return command.take(asked, lane())


def judged(taken: Taken) -> JudgeReply:
    assert taken.reply is not None
    return msgspec.json.decode(taken.reply, type=JudgeReply)


def test_the_table_holds_only_backends_that_can_be_asked() -> None:
    for name in BACKENDS:
        backend = named(name)
        assert callable(backend.preflight)
        assert callable(backend.take)
        assert backend.by_hand is (name == "human")


def test_an_unknown_backend_is_refused_with_the_name_that_was_meant() -> None:
    with pytest.raises(RelayError, match="no backend `comand`") as caught:
        named("comand")
    assert caught.value.hint == "did you mean `command`?"


def test_a_program_gets_the_prompt_on_stdin_and_works_in_the_folder_of_the_leg(tmp_path: Path) -> None:
    tool = program(tmp_path, 'cat > prompt.txt; printf \'{"status": "done"}\' > "$RELAY_REPLY"; echo working')
    seen: list[bytes] = []
    spawned: list[Process] = []
    asked = ask(tmp_path, agent(tool), "work")
    taken = command.take(asked, lane(sink=seen.append, spawned=spawned.append))
    assert (taken.ended_by, taken.reply) == ("reply", b'{"status": "done"}')
    assert (tmp_path / "leg/prompt.txt").read_text() == "make it so, naïvely"
    assert b"".join(seen) == b"working\n"
    assert len(spawned) == 1
    assert taken.version == hashlib.sha256(Path(tool).read_bytes()).hexdigest()[:12]


def test_arguments_reach_the_program_without_a_shell_in_between(tmp_path: Path) -> None:
    tool = program(tmp_path, 'printf "%s" "$1" > got.txt; echo "{}" > "$RELAY_REPLY"')
    take(ask(tmp_path, agent(tool, "$(touch pwned); `id` *"), "work"))
    assert (tmp_path / "leg/got.txt").read_text() == "$(touch pwned); `id` *"
    assert not (tmp_path / "leg/pwned").exists()


def test_a_program_sees_neither_the_git_nor_the_relay_that_started_relay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere/.git")
    monkeypatch.setenv("RELAY_RUN", "an outer run")
    tool = program(tmp_path, 'echo "${GIT_DIR-unset} ${RELAY_RUN-unset} $RELAY_KIND" > seen')
    take(ask(tmp_path, agent(tool), "judge"))
    assert (tmp_path / "leg/seen").read_text() == "unset unset judge\n"


def test_a_program_that_exits_0_without_a_reply_has_not_replied(tmp_path: Path) -> None:
    taken = take(ask(tmp_path, agent(program(tmp_path, "exit 0")), "work"))
    assert (taken.ended_by, taken.reply) == ("no-reply", None)
    assert "wrote no reply to `RELAY_REPLY`" in (taken.problem or "")


@pytest.mark.parametrize(
    "plant",
    [
        'mkfifo "$RELAY_REPLY"',
        'echo "{}" > real.json; ln -s "$PWD/real.json" "$RELAY_REPLY"',
        'mkdir "$RELAY_REPLY"',
        'head -c 5000000 /dev/zero > "$RELAY_REPLY"',
        'io=$(dirname "$RELAY_REPLY"); echo "{}" > "$RELAY_REPLY"; mv "$io" mine; ln -s "$PWD/mine" "$io"',
    ],
    ids=["fifo", "link", "folder", "too-large", "behind-a-link"],
)
def test_a_reply_that_is_no_plain_file_of_a_sane_size_is_not_read(tmp_path: Path, plant: str) -> None:
    taken = take(ask(tmp_path, agent(program(tmp_path, plant)), "work"))
    assert (taken.ended_by, taken.reply) == ("no-reply", None)
    assert "was not read" in (taken.problem or "")


def test_a_worker_that_fails_crashed_even_if_it_left_a_reply(tmp_path: Path) -> None:
    tool = program(tmp_path, 'echo "{}" > "$RELAY_REPLY"; echo "out of ideas" >&2; exit 3')
    taken = take(ask(tmp_path, agent(tool), "work"))
    assert (taken.ended_by, taken.reply) == ("crash", None)
    assert (taken.problem or "").endswith("exited 3")


def test_a_judge_that_fails_has_not_judged_even_if_it_left_a_reply(tmp_path: Path) -> None:
    tool = program(tmp_path, 'echo \'{"verdict": "approve"}\' > "$RELAY_REPLY"; exit 3')
    taken = take(ask(tmp_path, agent(tool), "judge"))
    assert (taken.ended_by, taken.reply) == ("no-reply", None)


@pytest.mark.parametrize("end", ["kill -KILL $$", "sh -c 'kill -KILL $$'; exit $?"], ids=["itself", "its-child"])
def test_a_signal_is_called_by_its_name(tmp_path: Path, end: str) -> None:
    taken = take(ask(tmp_path, agent(program(tmp_path, end)), "work"))
    assert taken.ended_by == "crash"
    assert "ended by SIGKILL" in (taken.problem or "")


def test_a_wrapper_that_finds_no_interpreter_is_a_matter_of_set_up(tmp_path: Path) -> None:
    path = tmp_path / "claude"
    path.write_text("#!/usr/bin/env no-such-interpreter-at-all\n")
    path.chmod(0o755)
    taken = take(ask(tmp_path, agent(str(path)), "work"))
    assert taken.ended_by == "setup"
    assert "agent not installed" in (taken.problem or "")
    assert "exited 127" in (taken.problem or "")


@pytest.mark.parametrize(("kind", "ended_by"), [("work", "setup"), ("judge", "no-reply")])
def test_a_program_that_vanished_is_set_up_for_work_and_inconclusive_for_a_judge(
    tmp_path: Path, kind: Kind, ended_by: str
) -> None:
    taken = take(ask(tmp_path, agent("no-such-program-anywhere", by_exit=True), kind))
    assert (taken.ended_by, taken.reply) == (ended_by, None)
    assert "agent not installed" in (taken.problem or "")


def test_a_folder_that_is_gone_does_not_raise(tmp_path: Path) -> None:
    asked = ask(tmp_path, agent("true"), "work")
    Path(asked.folder).rmdir()
    assert take(asked).ended_by == "setup"


def test_a_program_the_kernel_will_not_run_does_not_raise(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_bytes(b"\x7fELF, but not really")
    path.chmod(0o755)
    taken = take(ask(tmp_path, agent(str(path)), "work"))
    assert taken.ended_by == "setup"


def test_an_argument_with_a_nul_does_not_raise(tmp_path: Path) -> None:
    taken = take(ask(tmp_path, agent(program(tmp_path, "exit 0"), "a\0b"), "work"))
    assert taken.ended_by == "setup"


@pytest.mark.parametrize(
    ("script", "limits", "ended_by"),
    [
        ("sleep 600", Limits(seconds=0.2), "timeout"),
        ("sleep 600", Limits(seconds=60, idle=0.2), "idle"),
        ("exec yes", Limits(seconds=60, output=100_000), "output"),
    ],
)
def test_a_limit_that_was_passed_ends_the_leg_by_its_name(
    tmp_path: Path, script: str, limits: Limits, ended_by: str
) -> None:
    taken = take(ask(tmp_path, agent(program(tmp_path, script), by_exit=True), "judge", limits))
    assert (taken.ended_by, taken.reply) == (ended_by, None)


def test_exit_0_of_a_mechanical_worker_is_done(tmp_path: Path) -> None:
    taken = take(ask(tmp_path, agent("true", by_exit=True), "work"))
    assert taken.ended_by == "reply"
    assert taken.reply is not None
    assert msgspec.json.decode(taken.reply, type=WorkReply).status == "done"


def test_another_exit_of_a_mechanical_worker_is_a_crash(tmp_path: Path) -> None:
    taken = take(ask(tmp_path, agent("false", by_exit=True), "work"))
    assert (taken.ended_by, taken.problem) == ("crash", "`false` exited 1")


def test_exit_0_of_a_mechanical_judge_approves_and_touches_no_criterion(tmp_path: Path) -> None:
    reply = judged(take(ask(tmp_path, agent("true", by_exit=True), "judge")))
    assert (reply.verdict, reply.nonce, reply.criteria, reply.findings) == ("approve", NONCE, (), ())


def test_another_exit_of_a_mechanical_judge_is_one_finding_that_can_be_run_again(tmp_path: Path) -> None:
    tool = program(tmp_path, "echo 'x.py:1: E999 no'; exit 4")
    reply = judged(take(ask(tmp_path, agent(tool, "--all files", by_exit=True), "judge")))
    (finding,) = reply.findings
    assert (reply.verdict, reply.nonce) == ("revise", NONCE)
    assert (finding.severity, finding.path, finding.line, finding.quote) == ("blocker", ".", 1, "")
    assert finding.why == "x.py:1: E999 no"
    assert finding.repro is not None
    assert (finding.repro.command, finding.repro.expect_exit) == (f"{tool} '--all files'", 4)
    assert "exited 4" in finding.title


@pytest.mark.parametrize("end", ["exit 126", "exit 127", "kill -TERM $$", "exit 137"])
def test_a_mechanical_judge_that_could_not_judge_is_inconclusive(tmp_path: Path, end: str) -> None:
    taken = take(ask(tmp_path, agent(program(tmp_path, end), by_exit=True), "judge"))
    assert (taken.ended_by, taken.reply) == ("no-reply", None)


def test_a_relative_path_is_refused_since_the_reviewed_code_could_stand_there(tmp_path: Path) -> None:
    asked = ask(tmp_path, agent("./judge.sh", by_exit=True), "judge")
    program(tmp_path / "leg", "exit 0", "judge.sh")
    taken = take(asked)
    assert (taken.ended_by, taken.reply) == ("no-reply", None)
    with pytest.raises(RelayError, match="relative path"):
        command.preflight(asked.agent, tmp_path / "leg")


def test_a_program_is_never_found_through_a_relative_entry_of_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "exit 0", "planted-judge")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", os.environ["PATH"]]))
    with pytest.raises(RelayError, match="not there, or not executable on PATH"):
        command.preflight(agent("planted-judge"), tmp_path)


def test_preflight_names_a_missing_program_and_says_where_to_change_it(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="`no-such-program-anywhere` of agent `tool`") as caught:
        command.preflight(agent("no-such-program-anywhere"), tmp_path)
    assert caught.value.exit_code is Exit.HUMAN
    assert "`[agents.tool]`" in caught.value.hint


def test_preflight_refuses_an_agent_without_a_command(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="agent `tool` has no command"):
        command.preflight(agent(), tmp_path)


def test_preflight_tells_a_changed_program_from_the_one_before(tmp_path: Path) -> None:
    before = command.preflight(agent(program(tmp_path, "exit 0")), tmp_path)
    after = command.preflight(agent(program(tmp_path, "exit 1")), tmp_path)
    assert len(before) == 12
    assert before != after


def test_what_a_program_wrote_stands_in_no_problem_since_receipts_hold_no_prose(tmp_path: Path) -> None:
    tool = program(tmp_path, "printf 'I am nearly done'; exit 1")
    assert take(ask(tmp_path, agent(tool), "work")).problem == f"`{tool}` exited 1"
