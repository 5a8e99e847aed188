"""A person takes the leg: Relay offers it, the person writes the reply, and the next `relay resume` reads it here."""

from pathlib import Path
from typing import Final

from relay.backends.base import Lane, Needs
from relay.errors import RelayError
from relay.host import files
from relay.terms import Agent, Ask, Taken

by_hand = True
LIMIT: Final = 4 << 20
"""The largest reply that is read, in bytes."""


def preflight(agent: Agent, where: Path) -> str:
    """Return no version: nothing has to be installed for a person."""
    del agent, where
    return ""


def needs(ask: Ask) -> Needs:
    """Return nothing: a person is in no jail."""
    del ask
    return Needs()


def take(ask: Ask, lane: Lane) -> Taken:
    """Read the reply that a person left at `ask.reply_path`."""
    try:
        reply = files.handed(Path(ask.reply_path), LIMIT)
    except FileNotFoundError:
        return Taken(ended_by="no-reply", problem=f"there is no reply at `{ask.reply_path}` yet")
    except RelayError as error:
        return Taken(ended_by="no-reply", problem=error.message)
    except OSError as error:
        return Taken(ended_by="no-reply", problem=f"the reply at `{ask.reply_path}` cannot be read: {error.strerror}")
    lane.sink(f"read the reply at `{ask.reply_path}` ({len(reply)} bytes)\n".encode(errors="replace"))
    return Taken(ended_by="reply", reply=reply)
