"""A forge on this machine, for tests: bare repositories on the disk, and a server that plays GitHub's REST API.

    with Hub(away) as hub:
        hub.fails("POST /pulls", 502, times=1)
        world.save(ship={"method": "pr", "api": hub.url})

`away` is the repository that is pushed to, `hub` the server, `programs` a `gh` and a `glab` that carry requests to it.
"""

from tests.forge.away import Away, accepted, lined_up
from tests.forge.hub import GONE, TOKEN, Hub, Pull

__all__ = ["GONE", "TOKEN", "Away", "Hub", "Pull", "accepted", "lined_up"]
