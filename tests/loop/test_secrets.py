"""Secrets that an agent was given, or found, reach nothing that Relay keeps or says, and no other agent."""

import secrets
from pathlib import Path

from tests.loop.faults import stopped, through
from tests.world import FIXED, World

FIX = f"cat > calc.py <<'END'\n{FIXED}END\n"
DONE = """printf '{"status": "done", "summary": "done"}' > "$RELAY_REPLY"\n"""


def _kept(world: World) -> dict[str, bytes]:
    """Read every file of the ledger."""
    return {str(path): path.read_bytes() for path in Path(world.root, ".git", "relay").rglob("*") if path.is_file()}


def _drawn() -> tuple[str, str]:
    """Draw a secret that only its variable tells, and one that has the shape of one."""
    return secrets.token_urlsafe(24), "ghp" + "_" + secrets.token_hex(18)


def test_a_secret_that_an_agent_says_is_in_no_file_of_the_ledger_and_the_note_can_still_be_made_again(
    world: World,
) -> None:
    given, shaped = _drawn()
    text = (
        f"{FIX}"
        'echo "the key is $SERVICE_LINE"; printf "split "; printf "%s" "$SERVICE_LINE" | cut -c1-9 | tr -d "\\n";'
        ' printf "%s\\n" "$SERVICE_LINE" | cut -c10-\n'
        f'printf \'{{"status": "done", "summary": "used %s and {shaped}"}}\' "$SERVICE_LINE" > "$RELAY_REPLY"\n'
    )
    world.shell("implementer", text, phase="implement", env=["SERVICE_LINE"])
    world.save(checks={"says": f"echo {shaped}; exit 1"})
    world.relay("run", world.spec(), env={"SERVICE_LINE": given})
    for name, data in _kept(world).items():
        if not name.endswith("plan.toml"):  # a command that a person wrote into relay.toml is theirs
            assert given.encode() not in data, name
    assert b"[redacted SERVICE_LINE]" in Path(world.legs()[0], "reply.json").read_bytes()
    assert shaped.encode() not in Path(world.legs()[0], "reply.json").read_bytes()
    assert shaped.encode() not in Path(world.legs()[0], "check-1.log").read_bytes()
    run = world.only_run()
    Path(world.legs()[0], "note.md").unlink()
    through(world.relay("note", "rebuild", f"{run}/01-implement"))
    through(world.relay("verify", run))


def test_what_set_up_recovery_and_checks_print_reaches_no_prompt_no_log_and_no_terminal(world: World) -> None:
    given, shaped = _drawn()
    says = f"echo held: $SERVICE_URL {shaped}"
    see = 'cat > "$0.seen"; '
    world.shell("implementer", f"{see}{FIX}{DONE}", phase="implement")
    approve = """printf '{"verdict": "approve", "nonce": "%s"}' "$RELAY_NONCE" > "$RELAY_REPLY"\n"""
    for phase in ("review", "acceptance"):
        world.shell(phase, f"{see}{approve}", phase=phase)
    tables = {
        "checks": {"says": f"{says}; exit 1"},
        "recovery": {"commands": [says]},
        "worktree": {"setup": [says], "env": ["SERVICE_URL"]},
    }
    world.save(**tables)
    ran = world.relay("run", world.spec(), env={"SERVICE_URL": given})
    through(ran)
    kept = _kept(world)
    for name, data in kept.items():
        assert given.encode() not in data, name
        if not name.endswith(("plan.toml", "relay.toml")):
            assert shaped.encode() not in data.replace(says.encode(), b""), name
    for name in ("setup.log", "prompt.md", "check-1.log"):
        found = [data for path, data in kept.items() if path.endswith(name)]
        assert any(b"held: [redacted SERVICE_URL] [redacted github-token]" in data for data in found), name
    assert given not in ran.out + ran.err
    for name, times in {"implementer": 1, "review": 1, "acceptance": 2}.items():
        prompt = (world.folder / "agents" / f"{name}.sh.seen").read_text().replace(says, "")
        assert not any(held in prompt for held in (given, shaped)), name
        assert prompt.count("held: [redacted SERVICE_URL] [redacted github-token]") == times, name


def test_a_command_that_a_judge_names_is_run_as_it_is_and_kept_without_its_secret(world: World) -> None:
    _, shaped = _drawn()
    claimed = [{"id": "c1", "met": True, "command": f"test -f calc.py -a {shaped} = {shaped}"}]
    world.approver("acceptance", criteria=claimed)
    through(world.inside("run", world.spec("# Make add add\n\n## Acceptance\n\n- it reads well\n")))
    [result] = world.receipts()[-1]["criteria"]
    assert (result["met"], result["by"], result["exit"]) == (True, "judge", 0)
    assert result["command"] == "test -f calc.py -a [redacted github-token] = [redacted github-token]"
    for name, data in _kept(world).items():
        assert shaped.encode() not in data, name
    through(world.inside("verify", world.only_run()))


def test_the_terminal_and_its_json_say_no_secret_though_a_committed_file_has_one(world: World) -> None:
    _, shaped = _drawn()
    world.shell("implementer", f'{FIX}printf "key = {shaped}\\n" > settings.ini\n{DONE}', phase="implement")
    world.save()
    through(world.inside("run", world.spec()))
    run = world.only_run()
    shown = world.inside("show", run, "diff", "--json")
    assert "settings.ini" in shown.out
    assert shaped not in shown.out
    assert "[redacted github-token]" in shown.events[0]["text"]
    assert shaped in world.inside("show", run, "diff").out, "a diff that is piped can be applied"
    assert "key = [redacted github-token]" in world.text("02-review", "prompt.md")
    assert not [name for name, data in _kept(world).items() if shaped.encode() in data]


def test_a_secret_in_a_persons_own_words_is_taken_out_and_they_are_told(world: World) -> None:
    given, shaped = _drawn()
    ask = 'if [ -e "$0.asked" ]; then cat > "$0.asked"; else touch "$0.asked"; '
    ask += """printf '{"status": "blocked", "question": "which key?"}' > "$RELAY_REPLY"; exit 0; fi\n"""
    world.shell("implementer", f"{ask}{FIX}{DONE}", phase="implement")
    world.save()
    environment = {"SERVICE_TOKEN": given}
    stopped(world.relay("run", world.spec(), env=environment), 4, "relay answer")
    told = world.relay("answer", world.only_run(), f"use {given} or {shaped}", env=environment)
    through(told)
    assert "a secret was taken out of what you wrote" in told.err
    through(world.relay("resume", env=environment))
    assert world.text("02-answer", "why.md") == "use [redacted SERVICE_TOKEN] or [redacted github-token]"
    prompt = (world.folder / "agents" / "implementer.sh.asked").read_text()
    assert "use [redacted SERVICE_TOKEN] or" in prompt
    told = world.relay("reject", world.only_run(), "--why", f"it prints {shaped}")
    through(told)
    assert shaped not in told.out + told.err
    for name, data in _kept(world).items():
        assert not any(held.encode() in data for held in (given, shaped)), name


def test_the_ledger_is_for_the_person_alone(world: World) -> None:
    world.commit({"AGENTS.md": "Use tabs.\n"})
    world.reviser("review", path="calc.py", quote="return", times=1)
    world.save(checks={"fine": "true"}, worktree={"setup": ["true"]})
    world.relay("run", world.spec())
    world.relay("reject", world.only_run(), "--why", "not yet")
    world.relay("resume")
    world.relay("approve", world.only_run())
    ledger = world.root / ".git" / "relay"
    modes = {str(path.relative_to(ledger)): path.lstat().st_mode & 0o7777 for path in [ledger, *ledger.rglob("*")]}
    names = {Path(name).name for name in modes}
    assert names >= {"format", "lock", "plan.toml", "transcript.jsonl", "setup.log", "check-1.log", "why.md", "note.md"}
    assert names >= {"AGENTS.md", "spec.md", "prompt.md", "start.json", "receipt.json", "reply.json"}
    wrong = {name: oct(mode) for name, mode in modes.items() if mode != (0o700 if (ledger / name).is_dir() else 0o600)}
    # What git's settings were is kept with the mode with which it is put back; nobody passes the folder above.
    assert {name: mode for name, mode in wrong.items() if "guarded" not in Path(name).parts} == {}
