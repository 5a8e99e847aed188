"""plan.toml: the frozen plan as TOML, without the nulls that TOML does not have."""

from typing import Any

import msgspec

from relay.errors import Exit, RelayError
from relay.host import redact
from relay.terms import SCHEMA, Plan


def encode(plan: Plan) -> bytes:
    """Return the plan as TOML; what is None is left out."""
    import tomli_w

    return tomli_w.dumps(_without_none(msgspec.to_builtins(plan))).encode()


def decode(data: bytes, path: str) -> Plan:
    """Read a plan strictly; anything unknown or torn is an error (exit 6) that names the file.

    What its variables hold is a secret from here on.
    """
    try:
        found = msgspec.toml.decode(data)
        schema = found.get("schema")
        if schema != SCHEMA:
            raise RelayError(
                f"`{path}` has schema `{schema}`, and this version reads {SCHEMA}",
                hint="use the version of Relay that wrote it",
                exit_code=Exit.GATE,
            )
        plan = msgspec.convert(found, Plan)
    except (msgspec.MsgspecError, ValueError) as error:
        hint = "restore it, or start anew with `relay run`"
        raise RelayError(f"`{path}` cannot be read: {error}", hint=hint, exit_code=Exit.GATE) from None
    for agent in plan.agents:
        redact.name(agent.env if agent.key is None else (*agent.env, agent.key))
    redact.name((*plan.worktree.env, *plan.ship.env))
    return plan


def renamed(plan: Plan, run: str) -> Plan:
    """Return the same plan under another run id."""
    return msgspec.structs.replace(plan, run=run)


def _without_none(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    """Drop the keys whose value is None, all the way down."""
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value]
    return value


def table(value: msgspec.Struct) -> bytes:
    """Return any struct as a TOML file: a phase as it was resolved, for instance."""
    import tomli_w

    return tomli_w.dumps(_without_none(msgspec.to_builtins(value))).encode()
