"""A project's instructions for coding agents: what reaches all of them alike, through Relay's prompt, from the base.

Programs find such files by themselves, each its own, and as the branch under review has them. So Relay has them not
look, and hands over what the base commit says (rule 11); what it does not hand over it names.
"""

import os
import posixpath
import shlex
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from relay.host import git
from relay.host.repository import Repository
from relay.terms import Struct

NAMES: Final = ("AGENTS.md", "CLAUDE.md")
LIMIT: Final = 20_000
"""Characters of one file that a prompt shows."""
LISTED: Final = 50
"""How many files of folders are named."""
KEPT_BACK: Final = tuple(
    f".{program}/{sort}/"
    for program in ("claude", "codex", "agents", "cursor")
    for sort in ("skills", "commands", "agents", "rules", "prompts")
)
"""Folders of what a program offers to its own agents alone."""
_LINK: Final = "120000"


class Found(Struct, frozen=True, kw_only=True):
    """What a commit has: texts by path, files that hold for one folder, folders that are not passed on."""

    texts: dict[str, bytes]
    nested: tuple[str, ...]
    kept_back: tuple[str, ...]


@lru_cache(maxsize=4)
def find(repo: Repository, commit: str) -> Found:
    """Look a commit through, once: it never changes."""
    out = os.fsdecode(git.run(repo, "ls-tree", "-r", "-z", "--full-tree", commit))
    records = (record.partition("\t") for record in out.split("\0"))
    modes = {path: head[:6] for head, _, path in records if path.endswith(NAMES) or _kept_back(path)}
    folders = {folder for path in modes for folder in _kept_back(path)}
    nested = sorted(path for path in modes if "/" in path and posixpath.basename(path) in NAMES)
    return Found(
        texts=dict(_texts(repo, commit, modes)),
        nested=tuple(path for path in nested if not _kept_back(path)),
        kept_back=tuple(sorted(folders)),
    )


def _kept_back(path: str) -> list[str]:
    """Return the folders that hold a path, among those that are not passed on."""
    whole = f"/{path}"
    if "/." not in whole:
        return []
    return [whole[1 : whole.index(f"/{name}") + len(name)] for name in KEPT_BACK if f"/{name}" in whole]


def _texts(repo: Repository, commit: str, modes: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files at the top; a link to the other one says nothing new, and one to elsewhere says what is there."""
    for name in NAMES:
        text = git.blob(repo, commit, name) if name in modes else None
        if text is not None and modes[name] == _LINK:
            target = posixpath.normpath(os.fsdecode(text))
            text = None if target in NAMES else git.blob(repo, commit, target)
        if text is not None:
            yield name, text


def shown(path: str, text: bytes) -> str:
    """Return what a prompt shows of a file, and how much it does not."""
    whole = text.decode("utf-8", "replace")
    more = len(whole) - LIMIT
    return whole if more <= 0 else f"{whole[:LIMIT]}\n[cut: {more} more characters stand in `{path}` at the base]"


def reading(found: Found, commit: str) -> list[str]:
    """Return the commands that show what holds for one folder, as it was at the base."""
    commands = [f"git show {shlex.quote(f'{commit[:12]}:{path}')}" for path in found.nested[:LISTED]]
    more = len(found.nested) - LISTED
    return commands + [f"git ls-tree -r --name-only {commit[:12]}  (for {more} more)"] * (more > 0)
