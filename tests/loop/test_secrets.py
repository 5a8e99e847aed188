"""Secrets that an agent was given, or found, reach nothing that Relay keeps."""

import secrets
from pathlib import Path

from tests.loop.faults import through
from tests.world import FIXED, World


def _kept(world: World) -> dict[str, bytes]:
    """Read every file of the ledger."""
    return {str(path): path.read_bytes() for path in Path(world.root, ".git", "relay").rglob("*") if path.is_file()}


def test_a_secret_that_an_agent_says_is_in_no_file_of_the_ledger_and_the_note_can_still_be_made_again(
    world: World,
) -> None:
    given, shaped = secrets.token_urlsafe(24), "ghp" + "_" + secrets.token_hex(18)
    text = (
        f"cat > calc.py <<'END'\n{FIXED}END\n"
        'echo "the key is $SERVICE_KEY"; printf "split "; printf "%s" "$SERVICE_KEY" | cut -c1-9 | tr -d "\\n";'
        ' printf "%s\\n" "$SERVICE_KEY" | cut -c10-\n'
        f'printf \'{{"status": "done", "summary": "used %s and {shaped}"}}\' "$SERVICE_KEY" > "$RELAY_REPLY"\n'
    )
    world.shell("implementer", text, phase="implement", env=["SERVICE_KEY"])
    world.save(checks={"says": f"echo {shaped}; exit 1"})
    world.relay("run", world.spec(), env={"SERVICE_KEY": given})
    for name, data in _kept(world).items():
        if not name.endswith("plan.toml"):  # a command that a person wrote into relay.toml is theirs
            assert given.encode() not in data, name
    assert b"[redacted SERVICE_KEY]" in Path(world.legs()[0], "reply.json").read_bytes()
    assert shaped.encode() not in Path(world.legs()[0], "reply.json").read_bytes()
    assert shaped.encode() not in Path(world.legs()[0], "check-1.log").read_bytes()
    run = world.only_run()
    Path(world.legs()[0], "note.md").unlink()
    through(world.relay("note", "rebuild", f"{run}/01-implement"))
    through(world.relay("verify", run))
