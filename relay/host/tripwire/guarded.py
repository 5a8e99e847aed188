"""What steers git (see `steering`): kept before a leg that no jail holds, put back after a breach.

What stood there instead is evidence first: copied, or moved where it is in git's own folder. Outside of that nothing
is moved or removed but a link, whose target is written down: a changed hook is overwritten in place, and one that
appeared may not run any more. Of settings only those are put back that could start a program or lead elsewhere.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files, git, touched
from relay.host.repository import Repository
from relay.host.tripwire import settings, steering
from relay.host.tripwire.steering import Folder

KEPT: Final = "guarded"
EVIDENCE: Final = "evidence"
_ROOM: Final = 64 << 20
"""So many bytes are kept in all."""
_LINKS: Final = 10
_SAMPLE: Final = ".sample"
"""How the names of hooks end that git comes with: they start nothing."""


def keep(repo: Repository, folder: Path) -> None:
    """Copy what is guarded into `folder`, which the leg's record names: plain files and links, as far as can be read.

    What is not kept cannot be put back; `put_back` says so.
    """
    room = _ROOM
    (folder / KEPT).mkdir(exist_ok=True, mode=0o700)
    for guarded in _folders(repo):
        for name in guarded.files():
            if not name.endswith(_SAMPLE):
                with suppress(OSError, RelayError):
                    room -= _copy(guarded.path / name, _held(folder, guarded, name), room)


def _folders(repo: Repository) -> Iterator[Folder]:
    """Yield what is guarded: settings first, for they say where hooks are."""
    yield from steering.settings(repo)
    yield from steering.hooks(repo)
    with suppress(RelayError):
        yield from steering.named_hooks(repo)


def _held(folder: Path, guarded: Folder, name: str) -> Path:
    return folder / KEPT / guarded.full(name).lstrip("/")


def _copy(path: Path, target: Path, room: int) -> int:
    """Copy a plain file with its mode, or a link as a link; return how many bytes that took."""
    mode = os.lstat(path).st_mode
    data = b"" if stat.S_ISLNK(mode) else files.read(path, min(room, files.LIMIT))
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if stat.S_ISLNK(mode):
        target.symlink_to(path.readlink())
    else:
        target.write_bytes(data)
        target.chmod(stat.S_IMODE(mode))
    return len(data)


def put_back(repo: Repository, folder: Path, before: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Put back what differs dangerously from `before`, a fingerprint; return the names of that, and of what was left.

    A copy that is not what the fingerprint says is not used: somebody rewrote it. Nothing is done where nothing was
    kept, or to anything that is as it was.
    """
    if not os.path.lexists(folder / KEPT):
        return (), ()
    job = _Job(repo, folder, before, [], [])
    for guarded in _folders(repo):
        job.mend(guarded)
    job.unlock()
    return tuple(dict.fromkeys(job.done)), tuple(dict.fromkeys(job.left))


@dataclass
class _Job:
    """One putting back: where copies and evidence are, what was there before, and what was done and left so far."""

    repo: Repository
    folder: Path
    before: Mapping[str, str]
    done: list[str]
    left: list[str]

    def mend(self, guarded: Folder) -> None:
        """Bring a folder back to itself, then each of its files to what it was."""
        label, mark = git.label(guarded.name), guarded.mark
        if mark not in self.before:  # nobody looked at it then, so what is there may be older
            return
        was = self.before[mark].removeprefix("a link to ").replace("watched", "")
        known = {name for name in self.before if name.startswith(f"{label}/")}
        try:
            if guarded.leads and not was and guarded.root is not None:
                self._unlink(guarded, guarded.root)
            if known and self._inside(guarded) and os.path.lexists(guarded.path) and not guarded.path.is_dir():
                self._set_aside(guarded.path, f"{guarded.name}.instead", inside=True)
                self.done.append(mark)
        except (OSError, RelayError):
            self.left.append(mark)
        if was != guarded.leads:  # another folder's files are not this one's
            self.left.append(mark)
            return
        names = {*guarded.files(), *(guarded.only or _below(_held(self.folder, guarded, "")))}
        for name in sorted(name for name in names if not name.endswith(_SAMPLE)):
            full = git.label(guarded.full(name))
            try:
                self.done += [full] * self._file(guarded, name, full)
            except (OSError, RelayError):
                self.left.append(full)
        if not guarded.only:
            gone = known - {git.label(guarded.full(name)) for name in (*names, "...")}
            self.left += sorted(name for name in gone if not name.endswith(_SAMPLE))

    def unlock(self) -> None:
        """Remove the locks on Relay's own refs that appeared: they would keep it from keeping the leg's work."""
        for name in steering.locks(self.repo.common):
            label = git.label(f"locks/{name}")
            if label not in self.before and name.startswith("refs/relay/"):
                with suppress(OSError, RelayError):
                    self._set_aside(self.repo.common / name, label, inside=True)
                    (self.repo.common / name).unlink(missing_ok=True)
                    self.done.append(label)

    def _inside(self, guarded: Folder) -> bool:
        """Tell whether a folder is git's own, and not a link to one of the person's."""
        return guarded.root == self.repo.common and not guarded.leads

    def _unlink(self, guarded: Folder, root: Path) -> None:
        """Remove the links that stand on the way to a folder where none stood before."""
        for _ in range(_LINKS):
            way = (path for path in reversed((guarded.path, *guarded.path.parents)) if path.is_relative_to(root))
            link = next((path for path in way if path.is_symlink()), None)
            if link is None:
                return
            self._set_aside(link, f"{guarded.name}.link", inside=False)
            self.done.append(guarded.mark)

    def _file(self, guarded: Folder, name: str, label: str) -> bool:
        """Put one file back and return True; False where that is not called for, an error where it cannot be."""
        path, kept = guarded.path / name, _held(self.folder, guarded, name)
        was, now = self.before.get(label, "nothing"), steering.digest(str(path))
        if was == now:
            return False
        mine = "nothing" if was == "nothing" else touched.digest(str(kept))
        if mine != was.partition(" ")[0]:
            raise RelayError(f"`{label}` was not kept, or the copy is not what was kept")
        if mine == now.partition(" ")[0]:
            raise RelayError(f"what changed is behind the link `{label}`")
        if os.path.realpath(path.parent) != os.path.join(os.path.realpath(guarded.path), *name.split("/")[:-1]):
            raise RelayError(f"`{label}` is behind a link")
        data = files.read(kept) if mine[:1] in {"x", "-"} else None
        if name.startswith("config") and guarded.only and _plain(path):
            made = settings.mended(self.repo, data or b"", files.read(path))
            if made is None:
                return False
            data = None if data is None else made
        inside, link = self._inside(guarded), kept.readlink() if mine.startswith("link:") else None
        self._set_aside(path, guarded.full(name), inside=inside)
        path.parent.mkdir(parents=True, exist_ok=True)
        if data is not None:
            files.write(path, data, stat.S_IMODE(kept.stat().st_mode))
        else:
            _restore(path, link, inside=inside)
        return True

    def _set_aside(self, path: Path, name: str, *, inside: bool) -> None:
        """Make evidence of what stands at `path`: a plain file is copied, a link is written down and removed.

        Anything else is moved if it is `inside` git's folder, and otherwise a `RelayError`.
        """
        if not os.path.lexists(path):
            return
        place = self.folder / EVIDENCE / name.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        while os.path.lexists(place):
            place = place.with_name(f"{place.name}~")
        if path.is_symlink():
            files.write(place, b"a link to " + os.fsencode(path.readlink()) + b"\n")
            path.unlink()
        elif inside and not _plain(path):
            path.rename(place)
        else:
            files.write(place, files.read(path))


def _restore(path: Path, link: Path | None, *, inside: bool) -> None:
    """Let the link stand at `path`, or nothing; what may not be removed there may not run any more."""
    if inside or link is not None:
        path.unlink(missing_ok=True)
    if link is not None:
        path.symlink_to(link)
    elif os.path.lexists(path):
        path.chmod(path.stat().st_mode & ~0o111)


def _plain(path: Path) -> bool:
    """Tell whether a plain file stands there that can be read."""
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= files.LIMIT


def _below(folder: Path) -> Iterator[str]:
    for where, links, names in os.walk(folder):
        for name in (*names, *(link for link in links if os.path.islink(os.path.join(where, link)))):
            yield os.path.relpath(os.path.join(where, name), folder)
