"""Which jail holds here, found by running it: a version says nothing about a kernel, a container or a policy.

The ladder of sandbox.md section 6: bubblewrap, a container that the person declares, nothing. Never silently weaker.
"""

import os
import shutil
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

from relay.errors import RelayError
from relay.host import proc, scratch
from relay.host.jail import bwrap, cgroup
from relay.host.jail.limits import USUAL
from relay.host.jail.mounts import Access, Mounts
from relay.terms import Limits, Struct

_QUICK: Final = Limits(seconds=20, keep=4096)
_EXTERNAL: Final = 'declare the container as the jail: [jail] mode = "external"'
_SEEN: Final = (
    "what an agent changes in the repository, its checkouts and your git settings is seen afterwards, not prevented;"
    " what it changes anywhere else is not seen"
)


class Rung(Struct, frozen=True, kw_only=True):
    """What confines a command. `program` is bwrap's path.

    `overlay` says that it can lay writes over a folder, `counts` that the kernel bounds the number of processes.
    """

    name: Literal["bwrap", "external", "off"]
    program: str = ""
    overlay: bool = False
    counts: bool = False

    @property
    def holds(self) -> bool:
        """Whether Relay itself confines what runs."""
        return self.name == "bwrap"


class Cause(NamedTuple):
    """A known way in which the jail cannot be had: a part of what bwrap says, what it means, what to do."""

    said: str
    cause: str
    remedy: str


MISSING: Final = Cause(
    "",
    "bubblewrap is not installed",
    "install it: apt install bubblewrap, dnf install bubblewrap, or pacman -S bubblewrap",
)
KNOWN: Final = (
    Cause(
        "setting up uid map: Permission denied",
        "AppArmor keeps bubblewrap from making a user namespace",
        "write /etc/apparmor.d/bwrap: abi <abi/4.0>, include <tunables/global> profile bwrap /usr/bin/bwrap"
        " flags=(unconfined) { userns, } and run: apparmor_parser -r /etc/apparmor.d/bwrap",
    ),
    Cause(
        "No permissions to create new namespace",
        "user namespaces are off here, or a container forbids them",
        f"allow them (sysctl user.max_user_namespaces, docker run --security-opt seccomp=...), or {_EXTERNAL}",
    ),
    Cause(
        "Can't mount proc",
        "a container masks parts of /proc",
        f"unmask them (docker run --security-opt systempaths=unconfined), or {_EXTERNAL}",
    ),
    Cause(
        "setting up uid map: Operation not permitted",
        "root lacks the capability SETFCAP here",
        "run Relay as an ordinary user, or add the capability to the container: --cap-add SETFCAP",
    ),
    Cause(
        "Creating new namespace failed",
        "no more user namespaces can be made: Relay runs in a jail itself, or user.max_user_namespaces is reached",
        f"run Relay outside that jail, raise the limit, or {_EXTERNAL}",
    ),
    Cause(
        "Unknown option --disable-userns",
        "this bubblewrap is older than 0.8",
        "install bubblewrap 0.8 or newer",
    ),
    Cause(
        "execvp prlimit",
        "the program `prlimit` is missing",
        "install util-linux",
    ),
)


def explain(said: str) -> Cause:
    """Return what is behind bwrap's words; unknown ones speak for themselves."""
    text = " ".join(said.split())[:400]
    return next(
        (known for known in KNOWN if known.said in said),
        Cause(said, f"bubblewrap does not run here: {text}", "see what stands in its way: bwrap --ro-bind / / true"),
    )


def choose(mode: str) -> tuple[Rung, str]:
    """Return the rung for `[jail] mode`, and the sentence to say aloud about it.

    `RelayError` for `required` where no jail holds, before anything was started.
    """
    if mode == "external":
        return Rung(name="external"), "commands are confined by the container that you declared; Relay adds no jail"
    if mode == "off":
        return Rung(name="off"), f"no jail, as you wrote: {_SEEN}"
    found = probe()
    if isinstance(found, Rung):
        extra = "" if found.counts else "; the number of processes is watched, not bounded, since this is root"
        return found, f"commands are jailed by bubblewrap{extra}"
    if mode == "required":
        raise RelayError(f"no jail holds here: {found.cause}", hint=found.remedy)
    return Rung(name="off"), (f"no jail holds here: {found.cause}; {_SEEN}. To have one, {found.remedy}")


@cache
def probe() -> Rung | Cause:
    """Return the rung that holds, or why none does; it runs once, with the very command line that jails use."""
    path = os.pathsep.join(entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry[:1] == "/")
    program = shutil.which("bwrap", path=path)
    if program is None:
        return MISSING
    with scratch.folder("probe") as folder:
        try:
            said = _try(program, folder, Access.READ)
        except KeyError as machine:
            return Cause("", f"there is no filter of system calls for the machine {machine}", _EXTERNAL)
        if said:
            return explain(said)
        with cgroup.bounded(1) as group:
            counts = group is not None or os.geteuid() != 0
        overlay = not _try(program, folder, Access.SCRATCH)
        return Rung(name="bwrap", program=program, overlay=overlay, counts=counts)


def _try(program: str, folder: Path, access: Access) -> str:
    """Return what bwrap complains of, or nothing when it ran a program."""
    mounts = Mounts(tree=folder, access=access, home=folder.parent / "home")
    with (
        cgroup.bounded(USUAL.processes) as group,
        bwrap.built(program, mounts, USUAL, bwrap.Asked()) as jail,
    ):
        env = {"PATH": os.defpath, "LC_ALL": "C"}
        guard = proc.Guard(look=lambda _: None, fds=jail.fds)
        ended = proc.run(
            [*jail.words, "true"],
            cwd="/",
            env=env,
            limits=_QUICK,
            spawned=lambda process: jail.enter(process, group),
            guard=guard,
        )
        return "" if ended.code == 0 and jail.ran else ended.text.strip() or f"exit {ended.code}"
