"""What a commit of Relay's never holds, decided path by path from lstat, names and the little content that matters.

Each refusal is a path and a reason for people; the work around it is kept (pitfalls rows 18, 19, 56, 68, 70, 111).
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay.host import git, names, provision, touched

LARGEST: Final = 50 << 20
"""A file of more bytes is refused: hosts refuse larger ones at the push, when it is too late (row 111)."""
_SHOWN: Final = 50
"""At most so many special files, and so many unreadable folders, are named."""
_INSIDE: Final = 2000
"""At most so many entries of an ignored folder are looked at for source."""
_UNFINISHED: Final = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
_MARKER: Final = re.compile(rb"^(<<<<<<<|>>>>>>>) ", re.MULTILINE)


@dataclass(frozen=True)
class Known:
    """What the decisions rest on: the view, and what stood there before the agent began.

    `modules` are the submodules of the parent, `installed` the dependency folders that it tracks, `put` what the
    set-up copied or linked; `merging` tells that the agent left a merge or a rebase unfinished.
    """

    here: touched.View
    baseline: Mapping[str, str]
    modules: frozenset[str]
    installed: frozenset[str]
    put: frozenset[str]
    merging: bool


def known(here: touched.View, git_dir: Path, baseline: Mapping[str, str]) -> Known:
    """Gather what is known before the first path is judged."""
    tracked = [entry.partition(b"\t") for entry in here.run("ls-files", "-z", "-s").split(b"\0") if entry]
    return Known(
        here=here,
        baseline=baseline,
        modules=frozenset(os.fsdecode(path) for mode, _, path in tracked if mode.startswith(b"160000")),
        installed=frozenset(filter(None, (names.unwanted(os.fsdecode(path)) for _, _, path in tracked))),
        put=frozenset(provision.recall(git_dir, provision.PUT)),
        merging=any(os.path.lexists(git_dir / name) for name in _UNFINISHED),
    )


def obstacles(known: Known) -> dict[str, str]:
    """Return what the look before git found: special files and folders that cannot be read."""
    seen = known.here.scan
    blocking = dict.fromkeys(seen.blocking, ", removed because git would wait on it for ever")
    special = {path: f"{kind}{blocking.get(path, '')}" for path, kind in list(seen.special.items())[:_SHOWN]}
    return special | dict.fromkeys(seen.unreadable[:_SHOWN], "cannot be read")


def hidden(known: Known) -> dict[str, str]:
    """Return what is ignored since the agent began and looks like source: tests would see it, the commit would not."""
    found = {}
    for path in known.here.ignored():
        if git.label(path) not in known.baseline and path not in known.put:
            inside = path if not path.endswith("/") else next(filter(names.source, _inside(known.here.top, path)), "")
            if inside and names.source(inside):
                found[path] = "ignored, but looks like source"
    return found


def _inside(top: Path, folder: str) -> Iterator[str]:
    left = _INSIDE
    for where, _, filenames in os.walk(top / folder):
        for name in filenames:
            yield os.path.relpath(f"{where}/{name}", top)
        left -= len(filenames)
        if left < 0:
            return


def why(known: Known, path: str, *, new: bool) -> tuple[str, str]:
    """Return the path to name and why it is refused; an empty reason when it may be committed."""
    unwanted = names.unwanted(path) if new else ""
    if unwanted and unwanted not in known.installed:
        return unwanted, "installed or cached, and not ignored"
    if new and (bare := _bare(known, path)):
        return bare, "an embedded repository"
    reasons = (
        (path.startswith(known.here.scan.unreadable), "cannot be read"),
        (known.merging and _conflicted(known.here.top, path), "holds conflict markers of an unfinished merge"),
        (path in known.put, "put there by the set-up"),
        (path.endswith("/"), "an embedded repository"),
        (path in known.modules and (known.here.top / path).is_dir(), "a submodule at another commit"),
        (new and names.secret(path), "looks like a secret"),
    )
    return path, next((reason for holds, reason in reasons if holds), "") or _shape(known, path)


def _bare(known: Known, path: str) -> str:
    """Return the folder above `path` that git would take for a bare repository, unless it was one before; else nothing.

    git obeys the settings in such a folder for whoever steps into it (sandbox.md 8.1 row 14).
    """
    parts = path.rstrip("/").split("/")
    for depth in range(1, len(parts)):
        folder = "/".join(parts[:depth])
        full = known.here.top / folder
        if (full / "HEAD").is_file() and (full / "objects").is_dir() and (full / "refs").is_dir():
            return "" if known.here.run("ls-files", "-z", "--", f"{folder}/HEAD") else f"{folder}/"
    return ""


def _shape(known: Known, path: str) -> str:
    """Judge what stands at `path` by lstat."""
    full = f"{known.here.top}/{path}"
    match known.here.kind(path):
        case "nothing" | "a folder":
            return ""
        case "a link":
            return "" if _leads_inside(known.here.top, path) else "a link that leads out of the tree"
        case "a file":
            size = os.lstat(full).st_size
            if size > LARGEST:
                return f"{size >> 20} MB, more than {LARGEST >> 20} MB"
            return "" if os.access(full, os.R_OK) else "cannot be read"
        case "unreadable":
            return "cannot be read"
        case kind:
            return kind


def _leads_inside(top: Path, path: str) -> bool:
    target = os.readlink(top / path)
    parts = os.path.normpath(os.path.join(os.path.dirname(path), target)).split("/")
    if os.path.isabs(target) or parts[0] in {"..", ".git"}:
        return False
    real = os.path.realpath(top)
    return os.path.realpath(top / path).startswith(f"{real}/") or os.path.realpath(top / path) == real


def _conflicted(top: Path, path: str) -> bool:
    try:
        descriptor = os.open(top / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with open(descriptor, "rb", buffering=0) as file:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return regular and len(set(_MARKER.findall(file.read(LARGEST) or b""))) > 1


def filtered(known: Known, paths: Sequence[str]) -> dict[str, str]:
    """Return the files that the settings want stored through a required filter (LFS, encryption).

    Relay runs no filter on an agent's tree, and stored as it is such a file would be wrong, or a secret in the open.
    """
    required = known.here.found.required
    if not required or not paths:
        return {}
    listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
    out = known.here.run("check-attr", "-z", "--stdin", "filter", stdin=listed).split(b"\0")
    found = zip(out[::3], out[2::3], strict=False)
    return {
        os.fsdecode(path): f"needs the filter `{os.fsdecode(name)}`, which Relay does not run"
        for path, name in found
        if os.fsdecode(name) in required
    }
