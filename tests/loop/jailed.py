"""Agents of a jailed relay: small shell scripts, which find nothing of the test inside."""

from typing import Final

from tests.world import FIXED, World

FIX: Final = "cat > calc.py << 'END'\n" + FIXED + "END\n"
DONE: Final = """printf '{"status": "done", "summary": "done"}' > "$RELAY_REPLY"\n"""
APPROVE: Final = """printf '{"verdict": "approve", "nonce": "%s"}' "$RELAY_NONCE" > "$RELAY_REPLY"\n"""


def agents(world: World, work: str = "", judge: str = "", **tables: object) -> None:
    """Line up a worker that fixes calc.py and two judges that approve; each does what is given first.

    `tables` go into relay.toml, beside a jail that is required.
    """
    world.shell("implementer", f"{FIX}{work}\n{DONE}", phase="implement")
    for phase in ("review", "acceptance"):
        world.shell(f"{phase}er", f"{judge}\n{APPROVE}", phase=phase)
    world.save(**{"jail": {"mode": "required"}} | tables)
