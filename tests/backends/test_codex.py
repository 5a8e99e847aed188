"""The real Codex takes a leg: what it is given, what it may do, and what Relay learns of it."""

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relay.backends import codex as backend
from tests.backends import codex
from tests.backends.codex import BROKEN, DONE, FIXED, KEY, Leg, replied
from tests.service import Script, Turn, Usage, do, nonce, say

Opened = Callable[[Script], Leg]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Return what opens a leg on a script."""
    with codex.opened(tmp_path, monkeypatch) as open_:
        yield open_


def repairing() -> list[Turn]:
    """Return what a worker does about the mistake."""
    return [
        Turn(say("I look."), do.read("calc.py"), thinking="hm"),
        do.edit("calc.py", "    return a - b\n", "    return a + b\n"),
        do.run("python3 -c 'import calc; print(calc.add(2, 3))'"),
        do.read("calc.py"),
        do.reply(DONE),
    ]


def test_a_worker_changes_its_tree_and_replies_by_the_schema(opened: Opened) -> None:
    leg = opened({"": repairing()})
    taken = leg.take(leg.ask())
    assert replied(taken) == DONE
    assert (leg.tree / "calc.py").read_text() == FIXED
    assert (taken.model, taken.billing, taken.problem) == (codex.MODEL, "api", None)
    assert (taken.version or "").split(" (")[0].count(".") == 2
    used = taken.usage
    assert (used.turns, used.turns_before_first_edit, used.repeated_reads, used.complete) == (5, 1, 1, True)
    assert used.input > used.cached > 0
    assert taken.cost_microusd


def test_what_happens_is_told_in_the_order_in_which_it_happens(opened: Opened) -> None:
    leg = opened({"": repairing()})
    leg.take(leg.ask())
    told = [one for one in leg.told if one.type not in {"line", "usage"}]
    kinds = ["thought", "text", *["call", "result"] * 4, "text"]
    assert [one.type for one in told] == kinds
    assert [one.tool for one in leg.of("call")] == ["exec_command", "apply_patch", "exec_command", "exec_command"]
    assert [one.id for one in leg.of("call")] == [one.id for one in leg.of("result")]
    assert leg.results()[2].strip() == "5"
    assert [one.turn for one in leg.of("call")] == [1, 2, 3, 4]
    assert [json.loads(one.text)["type"] for one in leg.of("line")][:2] == ["thread.started", "turn.started"]
    assert leg.of("usage")[-1].usage is not None


def test_a_model_that_writes_programs_is_read_as_well(opened: Opened) -> None:
    leg = opened({"": repairing()})
    taken = leg.take(leg.ask(model="gpt-6-sol"))
    assert replied(taken) == DONE
    assert (leg.tree / "calc.py").read_text() == FIXED
    assert {one.tool for one in leg.of("call")} == {"exec"}
    assert (taken.model, taken.usage.turns, taken.usage.turns_before_first_edit) == ("gpt-6-sol", 5, 1)


def test_a_judge_reads_and_runs_but_writes_nothing(opened: Opened) -> None:
    verdict = {"verdict": "approve", "nonce": nonce, "summary": "seen"}
    leg = opened(
        {
            "": [
                do.run("echo changed > calc.py; echo more > new.txt; git add -A; cat calc.py"),
                do.edit("calc.py", "    return a - b\n", "    return a + b\n"),
                do.reply({**verdict, "nonce": "0" * 32}),
            ]
        }
    )
    taken = leg.take(leg.ask("judge", prompt=f"The nonce must be `{leg.nonce}`."))
    assert taken.ended_by == "no-reply"  # asked twice for the right nonce
    assert (leg.tree / "calc.py").read_text() == BROKEN
    assert not (leg.tree / "new.txt").exists()
    assert "Read-only file system" in leg.of("result")[0].text
    assert [one.ok for one in leg.of("result")] == [True, False]


def test_what_the_events_leave_out_or_bring_late_is_told_once(opened: Opened) -> None:
    leg = opened({"": [do.run("echo 'x: Permission denied'; exit 1"), do.reply(DONE)]})
    leg.take(leg.ask())
    assert [one.ok for one in leg.of("result")] == [False]
    assert "Permission denied" in leg.results()[0]


def test_the_shells_of_a_worker_have_neither_the_key_nor_the_network_nor_the_disk(
    opened: Opened, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        leg = opened(
            {
                "": [
                    do.run("env; cat /proc/*/environ | tr '\\0' '\\n'"),
                    do.run(f"echo x > {outside}"),
                    do.run(f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 2)\""),
                    do.run('echo x > "$TMPDIR/passing" && cat "$TMPDIR/passing"'),
                    do.reply(DONE),
                ]
            }
        )
        taken = leg.take(leg.ask(env={"DATABASE_URL": "postgres://localhost/test"}))
    assert replied(taken) == DONE
    env, write, network, passing = leg.results()
    assert KEY not in env
    assert f"RELAY_NONCE={leg.nonce}" in env
    assert "DATABASE_URL=postgres://localhost/test" in env
    assert "Read-only file system" in write
    assert "not permitted" in network
    assert passing.strip() == "x"
    assert not outside.exists()


def test_nothing_that_stands_in_the_worktree_steers_the_program(opened: Opened, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    leg = opened({"": [do.run("true"), do.reply(DONE)]})
    planted = {
        ".codex/config.toml": f'notify = ["touch", "{mark}"]\ndeveloper_instructions = "PLANTED"\n'
        f'[mcp_servers.x]\ncommand = "touch"\nargs = ["{mark}"]\n',
        ".codex/hooks.json": json.dumps(
            {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {mark}"}]}]}}
        ),
        ".codex/rules/default.rules": 'prefix_rule(pattern=["true"], decision="forbidden")\n',
        ".agents/skills/x/SKILL.md": "---\nname: x\ndescription: PLANTED\n---\nPLANTED\n",
        "AGENTS.md": "PLANTED\n",
        "AGENTS.override.md": "PLANTED\n",
    }
    for name, text in planted.items():
        path = leg.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert replied(leg.take(leg.ask())) == DONE
    assert not mark.exists()
    assert "PLANTED" not in json.dumps(leg.bodies())
    assert [one.ok for one in leg.of("result")] == [True]


def test_a_request_carries_what_a_leg_has_use_for(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE)]})
    leg.take(leg.ask(effort="high"))
    (body,) = leg.bodies()
    assert {tool["name"] for tool in body["tools"]} <= {
        *("exec_command", "write_stdin", "apply_patch", "update_plan", "request_user_input"),
    }
    assert body["reasoning"]["effort"] == "high"
    assert leg.service.requests[0].size < 40_000
    assert codex.PROMPT in json.dumps(body["input"], ensure_ascii=False)
    assert leg.service.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_worker_whose_room_is_used_up_hands_over_with_a_note(opened: Opened) -> None:
    full = Usage(input=200_000, cached=0, output=100)
    note = {"status": "done", "summary": "half of it", "todo": ["the rest"]}
    leg = opened(
        {
            "room for this session is used up": [do.reply(note)],
            "": [do.edit("calc.py", "    return a - b\n", "    return a + b\n"), do.run("sleep 60").but(usage=full)],
        }
    )
    taken = leg.take(leg.ask())
    assert taken.ended_by == "handover"
    assert replied(taken) == note
    assert (leg.tree / "calc.py").read_text() == FIXED
    assert "return a + b" in json.dumps(leg.bodies()[-1]["input"])  # it remembers
    assert taken.usage.turns == 3


def test_a_window_that_the_person_gives_is_the_one_that_counts(opened: Opened) -> None:
    used = Usage(input=20_000, cached=0, output=100)
    leg = opened({"is used up": [do.reply(DONE)], "": [do.run("sleep 60").but(usage=used)]})
    assert leg.take(leg.ask(window=30_000)).ended_by == "handover"


def test_a_worker_that_is_done_at_the_end_of_its_room_is_done(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE).but(usage=Usage(input=250_000, cached=0, output=100))]})
    assert leg.take(leg.ask()).ended_by == "reply"


def test_a_judge_has_nobody_to_hand_over_to(opened: Opened) -> None:
    full = Usage(input=200_000, cached=0, output=100)
    leg = opened({"": [do.run("sleep 0.6").but(usage=full), do.reply({"verdict": "approve", "nonce": nonce})]})
    assert leg.take(leg.ask("judge", prompt=f"The nonce must be `{leg.nonce}`.")).ended_by == "reply"


def test_the_file_of_the_session_lies_beside_the_reply_afterwards(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE)]})
    taken = leg.take(leg.ask())
    kept = leg.io / backend.KEPT
    assert str(taken.session) in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in leg.io.iterdir()] == [backend.KEPT]


def test_no_leg_begins_with_what_another_one_left(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE)]})
    first, second = (leg.take(leg.ask()) for _ in range(2))
    assert first.session != second.session
    assert len(leg.bodies()[1]["input"]) == len(leg.bodies()[0]["input"])


def test_the_persons_own_settings_count_where_they_ask_for_it(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "codex"
    own.mkdir()
    quiet = "[features]\nplugins = false\napps = false\n"  # which talk to the vendor
    (own / "config.toml").write_text(f'developer_instructions = "MINE"\n{quiet}')
    monkeypatch.setenv("CODEX_HOME", str(own))
    leg = opened({"": [do.reply(DONE)]})
    leg.take(leg.ask())
    assert "MINE" not in json.dumps(leg.bodies()[0])
    taken = leg.take(leg.ask(settings="user"))
    assert "MINE" in json.dumps(leg.bodies()[1])
    assert not list((own / "sessions").rglob("*.jsonl"))
    assert str(taken.session) in (leg.io / backend.KEPT).read_text()
