"""What runs a vendor's program: its lines as they come, its ends, and nothing of it left."""

import json
import os
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relay.backends import engine
from relay.backends.engine import Ended, Lines, Stop
from relay.errors import Exit, RelayError
from relay.host import pids
from relay.terms import Agent, Ask, Limits, Told
from tests.backends.lanes import lane


def ask(folder: Path, limits: Limits, **env: str) -> Ask:
    nonce = secrets.token_hex(16)
    return Ask(
        run="261129-0230-fix-login",
        leg="01-implement",
        phase="implement",
        kind="work",
        boundary="implement",
        round=1,
        turn=1,
        nonce=nonce,
        prompt="",
        folder=str(folder),
        reply_path=str(folder / "reply.json"),
        limits=limits,
        agent=Agent(name="it", backend="claude-code", vendor="x"),
        env={"RELAY_NONCE": nonce, **env},
    )


class Run:
    """One run of a small program, and what was heard of it."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "program"
        self.folder = folder
        self.events: list[dict[str, Any]] = []
        self.told: list[Told] = []
        self.nonce = ""

    def __call__(
        self,
        script: str,
        *,
        limits: Limits = Limits(seconds=60),  # noqa: B008 - it is frozen
        heard: Callable[[dict[str, Any]], None] = lambda _: None,
        seconds: float = 60,
        **more: Any,  # noqa: ANN401 - of `engine.run`
    ) -> Ended:
        self.program.write_text(f"#!/bin/sh\n{script}\n")
        self.program.chmod(0o755)

        def hear(event: dict[str, Any]) -> None:
            self.events.append(event)
            heard(event)

        asked = ask(self.folder, limits)
        self.nonce = asked.nonce
        given = {"stdin": "prompt", "env": {"NAMED": "yes"}, **more}
        run = [str(self.program), "-x"]
        return engine.run(asked, lane(told=self.told.append), run, heard=hear, seconds=seconds, **given)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_events_are_heard_and_each_line_is_told_as_it_stands(run: Run) -> None:
    ended = run("""cat > stdin; echo '{"a": 1}'; echo; echo words >&2; printf '{"b": "%s"}' "$NAMED"; exit 3""")
    assert run.events == [{"a": 1}, {"b": "yes"}]
    assert [(one.type, one.text) for one in run.told] == [
        ("line", '{"a": 1}'),
        ("line", "words"),
        ("line", '{"b": "yes"}'),
    ]
    assert (ended.code, ended.said, ended.cut) == (3, "words", None)
    assert (run.folder / "stdin").read_text() == "prompt"


def test_lines_come_in_pieces_of_any_size_and_one_that_is_too_long_is_only_measured() -> None:
    whole = "\n".join(['{"a": "é"}', "x" * 30, "", '{"b": 2}', "the end"]).encode()
    for size in range(1, len(whole) + 1):
        found: list[bytes] = []
        lines = Lines(found.append, 20)
        for at in range(0, len(whole), size):
            lines.feed(whole[at : at + size])
        lines.end()
        assert found == ['{"a": "é"}'.encode(), b"[a line of 30 bytes]", b'{"b": 2}', b"the end"]


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'warning: old {"a": 1}', {"a": 1}),
        (b'{"a": 1', None),
        (b"[1]", None),
        (b"\xff\xfe", None),
        (b'{"a": "\xff"}', None),
        (b"[" * 100_000, None),
        (b'{"a":' * 100_000, None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_event_is_none(line: bytes, event: dict[str, Any] | None) -> None:
    assert engine.event(line) == event


def test_a_program_that_is_to_stop_may_still_say_what_it_used(run: Run) -> None:
    def heard(event: dict[str, Any]) -> None:
        if event.get("go") or event.get("used"):
            raise Stop("budget" if event.get("go") else "crash", "used all it may")

    script = """trap 'echo "{\\"used\\": 5}"; exit 0' INT; echo '{"go": 1}'; while :; do sleep 0.05; done"""
    ended = run(script, heard=heard)
    assert run.events == [{"go": 1}, {"used": 5}]
    assert (ended.cut, ended.problem) == ("budget", "used all it may")
    taken = engine.taken("it", ended)
    assert taken is not None
    assert (taken.ended_by, taken.problem) == ("budget", "`it` used all it may")


def test_a_program_that_will_not_stop_is_ended_with_all_it_started(run: Run) -> None:
    def heard(_: dict[str, Any]) -> None:
        raise Stop("budget", "used all it may")

    script = """trap '' INT TERM; (setsid sleep 300 &) ; echo '{"go": 1}'; while :; do sleep 0.05; done"""
    assert run(script, heard=heard).cut == "budget"
    assert pids.survivors(run.nonce) == []


def test_a_program_that_says_nothing_at_all_is_not_waited_for(run: Run) -> None:
    ended = run("sleep 300", first=0.3)
    assert (ended.cut, ended.problem) == ("idle", "said nothing within 0.3 s")
    assert pids.survivors(run.nonce) == []


def test_a_program_that_said_something_has_the_time_of_its_leg(run: Run) -> None:
    assert run("echo '{}'; sleep 1; echo '{}'", first=0.3).cut is None
    assert run.events == [{}, {}]


@pytest.mark.parametrize(
    ("script", "limits", "seconds", "cut"),
    [
        ("echo '{}'; sleep 300", Limits(seconds=60), 0.5, "timeout"),
        ("echo '{}'; sleep 300", Limits(seconds=60, idle=0.4), 60, "idle"),
        ("yes '{\"a\": 1}'", Limits(seconds=60, output=200_000), 60, "output"),
    ],
)
def test_each_limit_has_its_name_whatever_the_exit_code(
    run: Run, script: str, limits: Limits, seconds: float, cut: str
) -> None:
    ended = run(f"trap 'exit 0' INT TERM; {script}", limits=limits, seconds=seconds)
    assert ended.cut == cut
    assert engine.taken("it", ended) is not None


def test_what_somebody_else_ended_is_not_ours(run: Run) -> None:
    ended = run("echo '{}'; kill -TERM $$; sleep 9")
    assert (ended.cut, ended.code) == (None, -signal.SIGTERM)
    assert engine.taken("it", ended) is None


def test_in_the_open_too_a_program_gets_an_allow_list_and_the_way_to_the_network(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    ended = run("env")
    assert "hunter2" not in ended.said
    assert "HTTPS_PROXY=http://proxy.example:3128" in ended.said
    assert f"HOME={os.environ['HOME']}" in ended.said


def test_a_secret_is_read_from_a_pipe_once_and_stands_nowhere_else(run: Run) -> None:
    look = "env; tr '\\0' ' ' < /proc/$$/cmdline; tr '\\0' ' ' < /proc/$$/environ; timeout 0.2 cat /proc/$$/fd/8"
    ended = run(f"cat <&8 > got; cat > stdin; {look}", secret="hunter2 \\n $x")  # noqa: S106 - of a test
    assert (run.folder / "got").read_text() == "hunter2 \\n $x\n"
    assert (run.folder / "stdin").read_text() == "prompt"
    assert "hunter2" not in ended.said


def test_a_failure_of_who_hears_ends_the_program_and_passes_through(run: Run) -> None:
    def heard(_: dict[str, Any]) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        run("echo '{}'; sleep 300", heard=heard)
    assert pids.survivors(run.nonce) == []


def test_a_program_is_known_by_version_and_digest_and_again_when_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "it"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = []
    for version in ("1.2.3", "1.2.40"):
        program.write_text(f"#!/bin/sh\necho 'it {version} (x)'\n")
        program.chmod(0o755)
        found.append(engine.find("it", "someone"))
    assert [one.version for one in found] == ["1.2.3", "1.2.40"]
    assert len({one.digest for one in found}) == 2
    assert str(found[0]) == f"1.2.3 ({found[0].digest})"


def test_a_missing_program_is_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "it").write_text("#!/bin/sh\n")
    (tmp_path / "it").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".:")
    with pytest.raises(RelayError, match="`it` is not on PATH") as caught:
        engine.find("it", "someone")
    assert caught.value.exit_code is Exit.HUMAN
    assert "`[agents.someone]`" in caught.value.hint


def test_a_script_is_shown_with_its_package_and_a_binary_alone(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "it"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "it"}))
    script, binary = package / "bin" / "it.js", package / "bin" / "it"
    script.write_text("#!/usr/bin/env node\n")
    binary.write_bytes(b"\x7fELF")
    found = engine.Found(path=str(script), version="1.0.0", digest="0" * 12)
    assert engine.readable(found) == (package,)
    assert engine.readable(engine.Found(path=str(binary), version="1.0.0", digest="0" * 12)) == (binary,)
