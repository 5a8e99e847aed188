"""A forge: where a proposal to change a branch is opened, discussed and merged."""

import re
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, TypeVar

from relay.terms import Struct
from relay.ways.base import UnknownError

Read = TypeVar("Read")

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Home(Struct, frozen=True, kw_only=True):
    """Where a repository lives on a forge: `github.com` and `owner/name`."""

    host: str
    path: str

    @property
    def owner(self) -> str:
        """Return whose it is."""
        return self.path.rpartition("/")[0]


class Proposal(Struct, frozen=True, kw_only=True):
    """A pull request or merge request as the forge tells it, from the commit `head` into the branch `base`.

    `merged_as` is the commit that its merge made; `armed` says that the forge merges it once its conditions hold.
    """

    number: int
    id: str
    url: str
    state: Literal["open", "merged", "closed"]
    head: str
    base: str
    merged_as: str | None = None
    armed: bool = False


def commit(told: object) -> str:
    """Return the id of a commit that a forge told; `ValueError` for what is none, since git is given it."""
    if not isinstance(told, str) or not _COMMIT.fullmatch(told):
        raise ValueError("no id of a commit")
    return told


def read(answer: object, make: Callable[[Any], Read]) -> Read:
    """Read what a forge answered; `UnknownError` where that is something else, of a proxy or a portal, say."""
    try:
        return make(answer)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UnknownError("the forge answered something that is no proposal") from None


class Forge(Protocol):
    """What Relay asks of a forge. All raise `RefusedError` with the forge's own words, or `UnknownError`."""

    def find(self, branch: str) -> list[Proposal]:
        """Return the proposals from a branch, the newest first, those that ended too."""

    def view(self, number: int) -> Proposal:
        """Return one proposal as it stands now."""

    def create(self, title: str, body: str, branch: str, base: str) -> Proposal:
        """Open a proposal, or return the one that is open from that branch already."""

    def update(self, number: int, title: str, body: str) -> None:
        """Say anew what a proposal is."""

    def merge_when_ready(self, proposal: Proposal) -> None:
        """Ask the forge to merge it once its own conditions hold."""

    def close(self, proposal: Proposal) -> None:
        """Close it unmerged, and let the forge merge it by itself no more."""
