"""The lease of a worktree: what names it, whoever made it."""

from pathlib import Path

from relay.terms import Struct


class Lease(Struct, frozen=True, kw_only=True):
    """A worktree of Relay's: its folder, its administrative folder, and the hash of the `.git` that joins the two."""

    path: Path
    git_dir: Path
    pointer_sha256: str
