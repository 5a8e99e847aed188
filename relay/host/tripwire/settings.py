"""A file of git's settings compared with what it was, and brought back to that in all that could do harm."""

import os
import re
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import git, scratch
from relay.host.repository import Repository

HARMLESS: Final = re.compile(
    r"(user|author|committer)\.(name|email)|branch\..+\.(merge|rebase|description)|(color|column|advice)\..+"
    r"|core\.(abbrev|autocrlf|commentchar|eol|quotepath|safecrlf)"
)
"""All settings that start no program and lead nowhere else. Git has hundreds that do, and every version has more."""
_UPSTREAM: Final = re.compile(r"branch\..+\.remote")
_REMOTE: Final = re.compile(r"remote\..+\.url")
_MANY: Final = 50
"""Of more settings than this nobody's are told apart: the file is put back as a whole."""

_Entry = tuple[str, str | None]
"""A setting's full name and its value; one without `=` has none."""


def mended(repo: Repository, was: bytes, now: bytes) -> bytes | None:
    """Return the settings `now` with all that is not harmless as it `was`; None where nothing of that differs.

    What cannot be read, or not be mended setting by setting, is `was` as a whole.
    """
    try:
        before = _listed(repo, was)
        remotes = {".", *(key[len("remote.") : -len(".url")] for key, _ in before if _REMOTE.fullmatch(key))}
        old, new = (_weighty(entries, remotes) for entries in (before, _listed(repo, now)))
        if old == new:
            return None
        made = _edited(repo, now, old, new)
        return made if _weighty(_listed(repo, made), remotes) == old else was
    except (OSError, RelayError):
        return was


def _listed(repo: Repository, data: bytes) -> list[_Entry]:
    """Return every setting in order; `RelayError` where git cannot read them."""
    out = git.run(repo, "config", "--file", "-", "--no-includes", "--list", "-z", stdin=data)
    entries = (os.fsdecode(entry).partition("\n") for entry in out.split(b"\0") if entry)
    return [(key, value if given else None) for key, given, value in entries]


def _weighty(entries: list[_Entry], remotes: set[str]) -> list[_Entry]:
    """Leave out what is harmless; a branch may follow a remote that was there before."""
    return [
        (key, value)
        for key, value in entries
        if not HARMLESS.fullmatch(key) and not (_UPSTREAM.fullmatch(key) and value in remotes)
    ]


def _edited(repo: Repository, now: bytes, old: list[_Entry], new: list[_Entry]) -> bytes:
    """Have git edit a copy: each setting gets the values that it had, or goes."""
    differing = dict.fromkeys(key for key, _ in (*old, *new))
    wanted = {key: [value or "" for name, value in old if name == key] for key in differing}
    present = {key: [value or "" for name, value in new if name == key] for key in differing}
    changes = [key for key in differing if wanted[key] != present[key]]
    if len(changes) > _MANY:
        raise RelayError(f"more than {_MANY} settings differ")
    with scratch.folder("settings") as folder:
        path = Path(folder) / "config"
        path.write_bytes(now)
        for key in changes:
            if len(wanted[key]) == 1:  # in place: the order of settings may matter
                git.run(repo, "config", "--file", str(path), "--replace-all", key, *wanted[key])
                continue
            if present[key]:
                git.run(repo, "config", "--file", str(path), "--unset-all", key)
            for value in wanted[key]:
                git.run(repo, "config", "--file", str(path), "--add", key, value)
        return path.read_bytes()
