"""The lease of a worktree: what names it, whoever made it."""

from pathlib import Path
from typing import Final

from relay.terms import Struct

CACHE: Final = ".cache"
"""What the name of a worktree's own caches ends in."""


class Lease(Struct, frozen=True, kw_only=True):
    """A worktree of Relay's: its folder, its administrative folder, and the hash of the `.git` that joins the two."""

    path: Path
    git_dir: Path
    pointer_sha256: str

    @property
    def cache(self) -> Path:
        """Where tools keep what they fetch for this worktree alone: beside it, and gone with it."""
        return self.path.with_name(f"{self.path.name}{CACHE}")
