"""What of the network a jail reaches: nothing, the hosts on a list, or all that this machine does.

A jail has a network of its own, with a loopback of its own, so that services on 127.0.0.1 and abstract sockets of this
machine stay closed. What is opened goes through a door: a unix socket that is shown inside (sandbox.md section 10).
"""

import ipaddress
import os
import re
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from relay.errors import RelayError
from relay.host import files
from relay.host.jail import inside, proxy

_DOOR: Final = "/run/relay/door"
_INSIDE: Final = "/run/relay/inside.py"
_SYSTEM: Final = ("/usr", "/bin", "/opt", "/nix", "/snap")
_PROXY: Final = 3128
_LOW: Final = 1024
"""Ports below it cannot be opened inside, where nobody has a privilege."""
_PATTERN: Final = re.compile(r"(?:\*\.)?(?:[a-z0-9_-]+\.)*[a-z0-9_-]*[a-z][a-z0-9_-]*(?::\d{1,5})?")


class Door:
    """The way out of a jail while it is open, as a context manager.

    `mounts` are pairs of what is shown inside, to be read only, and where. `env` tells programs about the proxy;
    pip, uv, npm, yarn, cargo, go, git and curl obey it. `share` says that there is no network of its own.
    """

    def __init__(self, setting: str, allow: tuple[str, ...], loopback: tuple[str, ...], folder: Path) -> None:
        named = [_address(entry) for entry in loopback] if setting != "host" else []
        services = [address for address in named if ipaddress.ip_address(address[0]).is_loopback]
        taken = {port for _, port in services}
        own = next(port for port in range(_PROXY, _PROXY + len(taken) + 1) if port not in taken)
        proxied = [("127.0.0.1", own)] if setting == "allow" else []
        self.share = setting == "host"
        self.mounts: tuple[tuple[str, str], ...] = ()
        self.env = _environment(f"http://127.0.0.1:{own}") if proxied else {}
        self._folder, self._place = folder, Path()
        self._ports = [f"{address}:{port}" for address, port in (*proxied, *services)]
        rules = proxy.Rules(tuple(map(_pattern, allow if proxied else ())), frozenset(named))
        self._proxy = proxy.Proxy(rules, (*(None for _ in proxied), *services))

    def __enter__(self) -> Self:
        """Open the door, if there is anything to open."""
        if not self._ports:
            return self
        self._place = Path(tempfile.mkdtemp(prefix="door-", dir=self._folder))
        server, where = socket.socket(socket.AF_UNIX), os.open(self._place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        server.bind(f"/proc/self/fd/{where}/socket")  # the path of a socket may have 107 bytes, not more
        os.close(where)
        server.listen()
        self._proxy.open(server)
        runtime = os.path.realpath(sys.base_prefix)
        there = any(Path(runtime).is_relative_to(place) for place in _SYSTEM)
        shown = ((str(self._place), _DOOR), (os.path.realpath(inside.__file__), _INSIDE))
        self.mounts = shown if there else (*shown, (runtime, runtime))
        return self

    def __exit__(self, *_: object) -> None:
        """Close it, and hang up on whoever still talks."""
        self._proxy.close()
        if self._ports:
            files.remove_tree(self._place)

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """Return the command that opens the ways inside and becomes `argv`; exit code 126 when it cannot."""
        if not self._ports:
            return list(argv)
        # Not `sys.executable`: in a virtual environment that is a link, and may not be there inside.
        python = os.path.join(os.path.realpath(sys.base_prefix), "bin", "python{}.{}".format(*sys.version_info))
        return [python, "-I", "-S", _INSIDE, f"{_DOOR}/socket", *self._ports, "--", *argv]

    @property
    def refused(self) -> tuple[str, ...]:
        """What was asked for and not given, each with the reason: for the transcript."""
        return tuple(self._proxy.refused.values())


def door(setting: str, allow: tuple[str, ...], loopback: tuple[str, ...], folder: Path) -> Door:
    """Return a door that is still closed; its socket will be in `folder`, which must not be in an agent's tree.

    `setting` is `off`, `allow` or `host`. `allow` has hosts as `name`, `*.name` or either with `:port`; without one
    it is 80 and 443. `loopback` names services as `127.0.0.1:5432`: each is there inside, at the same address. Any
    other `address:port` in it is one that allowed names may lead to though it is private. `RelayError` for what is
    none of these.
    """
    if setting not in {"off", "allow", "host"}:
        raise RelayError(f"`{setting}` is no network setting", hint="write `off`, `host`, or a list of allowed hosts")
    return Door(setting, allow, loopback, folder)


def _pattern(entry: str) -> str:
    pattern = entry.lower().rstrip(".")
    if not _PATTERN.fullmatch(pattern) or int(pattern.partition(":")[2] or 1) not in range(1, 1 << 16):
        raise RelayError(
            f"`{entry}` is no host that can be allowed",
            hint="write a name such as `packages.example`, `*.files.example` or `mirror.example:8443`; "
            "an address goes into `loopback`",
        )
    return pattern


def _address(entry: str) -> proxy.Address:
    with suppress(ValueError):
        parts = urlsplit(f"//{entry}")
        address = ipaddress.ip_address("127.0.0.1" if parts.hostname == "localhost" else parts.hostname or "")
        if (
            parts.port
            and parts.netloc == entry
            and not parts.username
            and (parts.port >= _LOW or not address.is_loopback)
        ):
            return str(address), parts.port
    hint = f"write an address and a port such as `127.0.0.1:5432`, on this machine from {_LOW} on"
    raise RelayError(f"`{entry}` is no service that can be opened", hint=hint)


def _environment(url: str) -> dict[str, str]:
    """Return what tells programs about the proxy. Not PIP_PROXY: for pip it would outweigh NO_PROXY."""
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    others = {"NODE_USE_ENV_PROXY": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    within = dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")  # what a test starts inside is inside
    return dict.fromkeys((*proxies, "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"), url) | within | others
