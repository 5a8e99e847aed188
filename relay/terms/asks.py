"""What a leg is asked, and how it ended."""

from typing import Any, Literal

from relay.terms.facts import Usage
from relay.terms.plan import Agent
from relay.terms.words import Boundary, EndedBy, Kind, Reach, Struct


class Limits(Struct, frozen=True, kw_only=True):
    """What a program may use: seconds of wall clock, seconds without output, bytes of output kept and in all.

    What only an agent with a model uses: turns, tokens in and out, millionths of a dollar.
    """

    seconds: float
    idle: float | None = None
    keep: int = 1 << 20
    output: int | None = None
    turns: int | None = None
    tokens: int | None = None
    microusd: int | None = None


class Ask(Struct, frozen=True, kw_only=True):
    """What a backend is given: a prompt, a folder, limits, and where the reply goes. It sees nothing else.

    `turn` counts, from 1, the legs of this phase that ended by a reply, this one included. `schema` is the JSON schema
    of the reply. `context` is the share of its model's window after which a worker hands over.
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
    schema: dict[str, Any] = {}
    context: float = 0.6


class Told(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened in a leg, as every backend tells it: a line of its transcript, and of the live view.

    `text`: what the agent said, `thought` what it thought; `call`: it calls `tool` with `text` as arguments, `result`:
    what came of the call with that `id`; `usage`: what the leg used so far; `wait`: Relay waits, `text` says for what;
    `line`: a line of a program's own output, as it stands.
    """

    type: Literal["text", "thought", "call", "result", "usage", "wait", "line"]
    turn: int = 0
    text: str = ""
    tool: str = ""
    id: str = ""
    ok: bool = True
    usage: Usage | None = None
    cost_microusd: int | None = None


class Taken(Struct, frozen=True, kw_only=True):
    """How a backend's leg ended; `reply` is the raw text, which only `record/reply.py` turns into claims.

    A cost of None is one that nobody knows. `billing` says who was billed, as far as the backend can tell, `reach` what
    of the network the agent's commands had, where that is not what its cell has, `settings` whose settings it read.
    """

    ended_by: EndedBy
    reply: bytes | None = None
    problem: str | None = None
    model: str | None = None
    version: str | None = None
    session: str | None = None
    usage: Usage = Usage()
    cost_microusd: int | None = 0
    billing: str | None = None
    reach: Reach | None = None
    settings: Literal["none", "user"] | None = None
    until: str | None = None
