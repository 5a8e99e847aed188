"""A relay in the jail: what an agent may not do does not happen, and what others do meanwhile is not its fault."""

import json
import os
import shutil
import socket
import time
from pathlib import Path

from tests.loop.faults import nothing_started, refused, through, untouched
from tests.loop.jailed import DONE, FIX, agents
from tests.world import FIXED, World


def test_a_relay_runs_in_the_jail_and_says_so(jailed: World) -> None:
    ran = jailed.relay("run", jailed.spec())
    through(ran)
    assert "commands are jailed by bubblewrap" in ran.err
    assert {receipt["jail"] for receipt in jailed.receipts()} == {"bwrap"}
    through(jailed.relay("approve"))
    assert jailed.show("main", "calc.py") == FIXED
    assert "boundaries were enforced by bwrap" in jailed.relay("trace").out


def test_a_worker_changes_its_worktree_and_nothing_else(jailed: World) -> None:
    elsewhere = jailed.folder / "elsewhere.txt"
    attacks = "\n".join(
        [
            f"echo evil > {jailed.root}/calc.py",
            f"echo evil > {elsewhere}",
            f"git -C {jailed.root} config user.name evil",
            f"git -C {jailed.root} update-ref refs/heads/main HEAD~0",
            f"printf '#!/bin/sh\\n' > {jailed.root}/.git/hooks/post-commit",
            f"rm -rf {jailed.root}/.git/relay/runs",
            "echo evil > ~/.profile",
            "rm -f .git; ln -s /etc .git",
        ]
    )
    agents(jailed, f"({attacks}\n) 2>/dev/null; true\n")
    with untouched(jailed):
        through(jailed.relay("run", jailed.spec()))
    assert not elsewhere.exists()
    assert not (Path(os.environ["HOME"]) / ".profile").exists()
    assert [receipt["breaches"] for receipt in jailed.receipts()] == [[], [], []]


def test_what_a_judge_writes_vanishes_and_its_verdict_stands(jailed: World) -> None:
    agents(jailed, judge="echo vandal > calc.py; echo more > new.txt; rm -rf tests; git checkout -q --orphan x\n")
    through(jailed.relay("run", jailed.spec()))
    work, review, acceptance = jailed.receipts()
    assert (review["verdict"], acceptance["verdict"], acceptance["score"]) == ("approve", "approve", "1/1")
    assert work["tree"] == review["tree"] == acceptance["tree"]


def test_an_agent_sees_neither_the_ledger_nor_the_persons_secrets(jailed: World) -> None:
    home = Path(os.environ["HOME"])
    home.mkdir(exist_ok=True)
    (home / ".netrc").write_text("machine example login me")
    see = f'(cat {home}/.netrc; ls -A {jailed.root}/.git/relay; env; cat /proc/1/environ) > "$RELAY_REPLY.seen" 2>&1\n'
    agents(jailed, f'{see}cat "$RELAY_REPLY.seen"\n')
    through(jailed.relay("run", jailed.spec(), env={"MY_TOKEN": "of-the-person"}))
    said = jailed.text("01-implement", "transcript.jsonl")
    seen = "".join(json.loads(line).get("text", "") for line in said.splitlines())
    assert "RELAY_NONCE" in seen
    for hidden in ("machine example", "runs", "of-the-person"):
        assert hidden not in seen


def test_what_a_person_does_meanwhile_is_drift_and_voids_nothing(jailed: World) -> None:
    jailed.shell("implementer", f"echo ready\nsleep 2\n{FIX}{DONE}", phase="implement")
    jailed.save(jail={"mode": "required"})
    running = jailed.start("run", jailed.spec())
    while not any("ready" in path.read_text() for path in jailed.runs.glob("*/legs/*/transcript.jsonl")):
        assert running.poll() is None
        time.sleep(0.02)
    jailed.git("config", "user.signingKey", "mine")
    (jailed.root / "mine.txt").write_text("a person's own")
    running.communicate(timeout=60)
    assert running.returncode == 0
    work = jailed.receipts()[0]
    assert work["breaches"] == []
    assert {name.split(" ")[0] for name in work["drift"]} == {"config", "checkout/mine.txt"}
    assert (jailed.root / "mine.txt").read_text() == "a person's own"


def test_commands_have_no_network_but_the_services_that_are_named(jailed: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        python = shutil.which("python3", path="/usr/bin:/bin")
        call = f"{python} -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 5)\""
        agents(jailed)
        spec = f"# Fix\n\n## Acceptance\n\n- It is reached: `{call}`\n"
        stopped = jailed.relay("run", jailed.spec(spec))
        first = jailed.only_run()
        assert jailed.receipts(first)[0]["criteria"][0]["exit"] == 1, stopped
        jailed.save(jail={"mode": "required", "loopback": [f"127.0.0.1:{port}"]})
        jailed.relay("run", jailed.spec(spec))
    newest = max(path.name for path in jailed.runs.iterdir())
    assert jailed.receipts(newest)[0]["criteria"][0]["met"] is True


def test_set_up_and_checks_run_in_the_jail_too(jailed: World) -> None:
    outside = jailed.folder / "outside"
    touch = f"touch {outside} 2>/dev/null; touch built.txt"
    agents(jailed, worktree={"setup": [touch]}, checks={"all": f"test -e built.txt && ! touch {outside}"})
    through(jailed.relay("run", jailed.spec()))
    assert not outside.exists()
    assert jailed.receipts()[0]["checks"][0]["exit"] == 0


def test_required_without_a_jail_is_refused_with_the_remedy_before_anything_starts(world: World) -> None:
    agents(world)
    bare = world.folder / "bin"
    bare.mkdir()
    for name in ("git", "sh", "env", "cat"):
        (bare / name).symlink_to(str(shutil.which(name)))
    ran = world.relay("run", world.spec(), env={"PATH": str(bare)})
    refused(ran, 2, "bubblewrap is not installed", "apt install bubblewrap")
    nothing_started(world)


def test_what_ships_by_itself_is_confirmed_in_the_jail(jailed: World) -> None:
    outside = jailed.folder / "outside"
    look = f"grep -q 'return a + b' calc.py && ! touch {outside} 2>/dev/null"
    agents(jailed, ship={"approval": "auto", "verify": [look]})
    ran = jailed.relay("run", jailed.spec())
    assert ran.code == 0, ran
    assert jailed.receipts()[-1]["effect"]["outcome"] == "shipped", ran
    assert not outside.exists()


def test_a_jail_holds_where_the_home_is_reached_through_a_link(jailed: World) -> None:
    real = jailed.folder / "real state"
    real.mkdir()
    link = jailed.folder / "state link"
    link.symlink_to(real)
    through(jailed.relay("run", jailed.spec(), env={"XDG_STATE_HOME": str(link)}))
