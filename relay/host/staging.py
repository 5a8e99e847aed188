"""Git on a tree that an agent wrote, in a jail that can write a scratch index and scratch objects and nothing else.

No set of flags keeps every git from running what a tree plants (sandbox.md 8.1, row 9), so git reads such a tree only
in here; what comes out are objects, and those are checked before the repository takes them in (8.3).
"""

import os
import re
from pathlib import Path
from typing import Final

import msgspec

from relay.errors import Exit, RelayError
from relay.host import drivers, files, git, gitenv
from relay.host.jail.mounts import Access, around
from relay.host.jail.run import jailed
from relay.host.jail.rungs import Rung
from relay.host.jail.tools import readable
from relay.host.lease import Lease
from relay.host.repository import Repository
from relay.terms import Limits

_LOOSE: Final = 100
"""From so many objects on they stay a pack, as git's own `fetch` decides (transfer.unpackLimit)."""
_COMPLAINT: Final = re.compile(r"object ([0-9a-f]{40,64}): (\w+)")
_LARGEST: Final = 1 << 30
"""Bytes of a list of paths; a pack is not read by Relay."""


def _quoted(path: str) -> str:
    """Return one folder of a list in which `:` separates, as git reads it where a name begins with a quote."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


class Stage:
    """A scratch folder with an index and objects, and the jail in which git works on them and on `tree`."""

    def __init__(self, rung: Rung, repo: Repository, tree: Lease, scratch: Path, settings: drivers.Drivers) -> None:
        self._rung, self._repo, self._scratch, self._settings = rung, repo, scratch.resolve(), settings
        self._objects = self._scratch / "objects"
        self._objects.mkdir(parents=True)
        home = Path.home().resolve()
        shown = (*readable(os.environ.get("PATH", os.defpath), home), *settings.shown)
        mounts = around(
            repo,
            tree,
            Access.READ,
            home=home,
            readable=tuple(path for path in shown if not path.is_relative_to(tree.path)),
            writable=(self._scratch,),
        )
        # What became of the tree's own `.git` does not matter: it is never asked.
        self._mounts = msgspec.structs.replace(mounts, pinned={})

    def call(self, *args: str, stdin: bytes = b"", timeout: float) -> git.Answer:
        """Run git on the tree; as `git.call`, with the scratch index and no settings but those that shape content."""
        where = {
            "GIT_DIR": str(self._repo.common),
            "GIT_WORK_TREE": str(self._mounts.tree),
            "GIT_INDEX_FILE": str(self._scratch / "index"),
            "GIT_OBJECT_DIRECTORY": str(self._objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(str(self._repo.common / "objects")),
        }
        settings = (*self._settings.content, *self._settings.off, ("core.fsync", "none"))
        ended = jailed(
            self._rung,
            ["/bin/sh", "-c", 'exec "$@" >"$0/out" 2>"$0/err"', str(self._scratch), gitenv.program(), *args],
            self._mounts,
            env=gitenv.ours(self._repo, where, settings),
            limits=Limits(seconds=timeout, keep=4096),
            stdin=stdin,
        )
        if ended.ended != "exit":
            problem = f"git `{gitenv.verb(args)}` was ended by {ended.ended} while it looked at the worktree"
            raise RelayError(problem, hint=f"look at it: ls -la {self._mounts.tree}", exit_code=Exit.HUMAN)
        err = files.read_below(self._scratch, "err", _LARGEST).decode("utf-8", "replace")
        out = b"" if args[0] == "pack-objects" else files.read_below(self._scratch, "out", _LARGEST)
        return git.Answer(code=ended.code, out=out, err=err or ended.text)

    def carry(self, tree: str, parent: str, timeout: float) -> dict[str, str]:
        """Take a tree into the repository, if git finds no fault with it; else return the faults by object.

        `RelayError` when it cannot be taken in for another reason.
        """
        wanted = f"{tree}\n^{parent}\n".encode()
        packed = self.call("pack-objects", "--revs", "--stdout", "-q", stdin=wanted, timeout=timeout)
        if packed.code:
            raise git.failed(packed, "pack-objects")
        descriptor = os.open(self._scratch / "out", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as pack:
            few = int.from_bytes(os.pread(descriptor, 4, 8)) < _LOOSE
            verb = ("unpack-objects", "-q", "--strict") if few else ("index-pack", "--stdin", "--strict")
            taken = git.call(self._repo, *verb, stdin=pack, timeout=timeout)
        faults = dict(_COMPLAINT.findall(taken.err)) if taken.code else {}
        if taken.code and not faults:
            raise git.failed(taken, verb[0])
        return faults
