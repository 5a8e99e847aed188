"""What a leg is asked, and how it ended."""

from relay.terms.facts import Usage
from relay.terms.plan import Agent
from relay.terms.words import Boundary, EndedBy, Kind, Struct


class Limits(Struct, frozen=True, kw_only=True):
    """What a program may use: seconds of wall clock, seconds without output, bytes of output kept and in all."""

    seconds: float
    idle: float | None = None
    keep: int = 1 << 20
    output: int | None = None


class Ask(Struct, frozen=True, kw_only=True):
    """What a backend is given: a prompt, a folder, limits, and where the reply goes. It sees nothing else.

    `turn` counts, from 1, the legs of this phase that ended by a reply, this one included.
    """

    run: str
    leg: str
    phase: str
    kind: Kind
    boundary: Boundary
    round: int
    turn: int
    nonce: str
    prompt: str
    folder: str
    reply_path: str
    limits: Limits
    agent: Agent
    env: dict[str, str] = {}


class Taken(Struct, frozen=True, kw_only=True):
    """How a backend's leg ended; `reply` is the raw text, which only `record/reply.py` turns into claims."""

    ended_by: EndedBy
    reply: bytes | None = None
    problem: str | None = None
    model: str | None = None
    version: str | None = None
    session: str | None = None
    usage: Usage = Usage()
    cost_microusd: int = 0
    billing: str | None = None
    until: str | None = None
