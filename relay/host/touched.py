"""What somebody changed in a folder, seen through a scratch index: its `.git` and its own index are not trusted.

GIT_DIR is the common folder, so it does not matter what became of the worktree's own (sandbox.md 8.1, rows 1 to 4).
The scratch index starts as the copy that was made when the worktree was, with its stat data, so that a look costs one
lstat a file; without that copy every file is read.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay.errors import Exit, RelayError
from relay.host import drivers, git, scan, scratch, staging
from relay.host.jail.rungs import Rung
from relay.host.lease import Lease
from relay.host.repository import Repository

PRISTINE: Final = "relay-index"
"""The name, in a worktree's administrative folder, of the copy of its index from when it was made."""
_HASHED: Final = 64 << 20
"""Files up to this many bytes are compared by content; larger ones by size and times."""
_LONG: Final = 300.0
"""Seconds that git may take to look at all files, or to store them."""


@dataclass(frozen=True)
class View:
    """A folder, a scratch index for it, and what the look before found."""

    repo: Repository
    top: Path
    index: Path
    found: drivers.Drivers
    scan: scan.Scan
    stage: staging.Stage | None = None

    def call(self, *args: str, stdin: bytes = b"") -> git.Answer:
        """Run git on the folder with the scratch index, no filter and no hook; in a jail where there is a stage."""
        if self.stage is not None:
            return self.stage.call(*args, stdin=stdin, timeout=_LONG)
        env = {"GIT_DIR": str(self.repo.common), "GIT_WORK_TREE": str(self.top), "GIT_INDEX_FILE": str(self.index)}
        return git.call(
            self.repo, "-C", str(self.top), *args, stdin=stdin, env=env, config=self.found.off, timeout=_LONG
        )

    def run(self, *args: str, stdin: bytes = b"", ok: tuple[int, ...] = (0,)) -> bytes:
        """Do as `call`, but any other code is a `RelayError`."""
        answer = self.call(*args, stdin=stdin)
        if answer.code not in ok:
            raise git.failed(answer, args[0])
        return answer.out

    def against(self, commit: str) -> None:
        """Compare with this commit from now on; what is known of files that did not change stays known."""
        if self.call("read-tree", "-m", commit).code:
            self.index.unlink(missing_ok=True)
            self.run("read-tree", commit)

    def carry(self, tree: str, parent: str) -> dict[str, str]:
        """Take a tree that was stored here into the repository, or return what git finds wrong with it, by object."""
        return self.stage.carry(tree, parent, _LONG) if self.stage is not None else {}

    def changed(self) -> dict[str, bool]:
        """Return each path that differs from the index, with whether it is new; an embedded repository ends in `/`."""
        out = self.run("ls-files", "-z", "-t", "-m", "-d", "-o", "--exclude-standard")
        return {os.fsdecode(entry[2:]): entry[:1] == b"?" for entry in out.split(b"\0") if entry}

    def ignored(self) -> list[str]:
        """Return what is untracked and ignored; a folder that is ignored as a whole is one entry, ending in `/`."""
        out = self.run("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
        found = sorted(os.fsdecode(entry) for entry in out.split(b"\0") if entry)
        # git also lists a folder of which every file is ignored by itself, before those files
        return [path for path, after in zip(found, [*found[1:], ""], strict=False) if not _holds(path, after)]

    def kind(self, path: str) -> str:
        """Return what stands at `path` in the folder; behind a link is not in the folder, so that is nothing."""
        full = f"{self.top}/{path}"
        folder = os.path.dirname(full.rstrip("/"))
        return scan.kind(full) if os.path.realpath(folder) == folder else "nothing"


def _holds(folder: str, path: str) -> bool:
    return folder.endswith("/") and path.startswith(folder)


@contextmanager
def view(repo: Repository, lease: Lease, commit: str | None = None, *, rung: Rung | None = None) -> Iterator[View]:
    """Look at a worktree, compared with `commit`, or with what was checked out into it.

    Where `rung` holds, git looks at it in a jail. `RelayError` when the folder is gone or is a link. What would make
    git hang is removed first (see `scan.unblock`).
    """
    top, git_dir = lease.path, lease.git_dir
    if scan.kind(str(top)) != "a folder":
        raise RelayError(
            f"the worktree `{top}` is gone", hint="relay resume starts the leg afresh", exit_code=Exit.HUMAN
        )
    if trap := scan.trap(repo.common):
        place = f"{repo.common}/{trap}"
        raise RelayError(f"git would hang on `{place}`", hint=f"look at it: ls -l {place}", exit_code=Exit.HUMAN)
    seen = scan.look(top)
    scan.unblock(top, seen)
    with scratch.folder("stage") as folder:
        found = drivers.find(repo)
        stage = staging.Stage(rung, repo, lease, folder, found) if rung is not None and rung.holds else None
        here = View(repo, top, folder / "index", found, seen, stage)
        with suppress(OSError):
            shutil.copy2(git_dir / PRISTINE, here.index, follow_symlinks=False)  # with its time, which git compares
        if commit:
            here.against(commit)
        yield here


def digest(path: str) -> str:
    """Return a value that changes with what stands at `path`: kind, executable bit, content or target; never fails."""
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            return "link:" + hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                return scan.kind(path)
            mark = "x" if found.st_mode & stat.S_IXUSR else "-"
            if found.st_size > _HASHED:
                return f"{mark}large:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"
            return mark + hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return scan.kind(path)
