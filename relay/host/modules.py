"""Submodules of a worktree: what somebody leaves in their folders is in no commit of the repository around them."""

import hashlib
import os
from collections.abc import Iterator

from relay.host import git, names, touched


def look(here: touched.View) -> dict[str, str]:
    """Return each submodule's path with a value that changes with any file below it; caches do not count.

    By lstat alone: no git runs on a repository whose settings an agent may have written (sandbox.md 8.1, rows 8, 9).
    """
    listed = here.run("ls-files", "-z", "-s").split(b"\0")
    paths = [os.fsdecode(entry.partition(b"\t")[2]) for entry in listed if entry.startswith(b"160000")]
    return {git.label(path): _value(f"{here.top}/{path}") for path in paths}


def _value(folder: str) -> str:
    seen = hashlib.sha256()
    for line in sorted(_files(folder)):
        seen.update(os.fsencode(line) + b"\0")
    return seen.hexdigest()


def _files(folder: str) -> Iterator[str]:
    """Yield a line for each file, with its kind, size and time."""
    for where, folders, found in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in found:
            path = os.path.relpath(f"{where}/{name}", folder)
            if name != ".git" and not names.cache(path):
                state = os.lstat(f"{where}/{name}")
                yield f"{path} {state.st_mode} {state.st_size} {state.st_mtime_ns}"
