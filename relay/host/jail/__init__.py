"""The jail: commands that see their worktree and nothing else of the person's, and leave nothing behind.

`choose` says what holds here, `around` what a leg sees, `jailed` runs one command.
"""

from relay.host.jail.cell import Cell
from relay.host.jail.copies import copy
from relay.host.jail.limits import Bounds
from relay.host.jail.mounts import Access, Mounts, around
from relay.host.jail.run import Door, Network, environment, jailed
from relay.host.jail.rungs import Rung, choose
from relay.host.jail.tools import readable

__all__ = [
    "Access",
    "Bounds",
    "Cell",
    "Door",
    "Mounts",
    "Network",
    "Rung",
    "around",
    "choose",
    "copy",
    "environment",
    "jailed",
    "readable",
]
