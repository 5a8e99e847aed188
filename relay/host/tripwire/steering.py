"""What steers git besides its index and its refs: files of settings, what they include, and hooks, wherever they lie.

An agent that no jail holds can write all of it, so all of it is digested, and most of it is kept and put back (see
`guarded`). Nothing is followed but a folder of hooks that is a link itself; every look is bounded, and says so where
the bound is met. Names are raw; labels are made of them by those who write them down.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from relay.errors import RelayError
from relay.host import clock, files, git, touched
from relay.host.repository import Repository
from relay.host.tripwire import checkouts

MANY: Final = 1000
"""At most so many entries of a folder of hooks are read, and so many folders below `modules`."""
_INCLUDED: Final = 50
_SETTINGS: Final = ("config", "config.worktree")
_INCLUDES: Final = r"^include(if\..*)?\.path$"


class Folder(NamedTuple):
    """A folder with files that steer git: those named in `only`, or all of them, those of its folders too.

    `root` is where Relay knows that no link stands: the common folder, or a checkout; elsewhere there is none.
    """

    name: str
    path: Path
    root: Path | None
    only: tuple[str, ...] = ()

    @property
    def leads(self) -> str:
        """Where the folder is when a link stands on the way to it, or nothing."""
        real = os.path.realpath(self.path)
        return "" if real == str(self.path) else git.label(real)

    def files(self) -> list[str]:
        """Return the files that are there, by name below the folder."""
        if self.only:
            return [name for name in self.only if os.path.lexists(self.path / name)]
        return _below(self.path)[0]

    @property
    def mark(self) -> str:
        """Return the name under which a fingerprint says that the folder was looked at, and where it leads."""
        return git.label(f"hooks path {self.name}" if os.path.isabs(self.name) else self.name or "settings")

    def full(self, name: str) -> str:
        """Return the name of a file of this folder as it stands in a fingerprint, but raw."""
        return f"{self.name}/{name}" if self.name else name

    def look(self) -> dict[str, str]:
        """Digest the files, and say where the folder leads if not to itself; it need not be there."""
        found = {self.mark: f"a link to {self.leads}" if self.leads else "watched"}
        if not self.only and _below(self.path)[1]:
            found[git.label(self.full("..."))] = f"more than {MANY} entries: the others are not watched"
        return found | {git.label(self.full(name)): digest(str(self.path / name)) for name in self.files()}


def digest(path: str) -> str:
    """Return a value that changes with what stands at `path`, and behind it where that is a link; never fails."""
    plain = touched.digest(path)
    return f"{plain} {touched.digest(os.path.realpath(path))}" if plain.startswith("link:") else plain


def _below(folder: Path) -> tuple[list[str], bool]:
    """List what lies below a folder and is no folder, in one order, and tell whether that is not all."""
    found: list[str] = []
    folders, looked = [""], 0
    while folders and looked < MANY:
        here = folders.pop()
        with suppress(OSError), os.scandir(f"{folder}/{here}") as entries:
            for entry in sorted(entries, key=lambda entry: entry.name)[: MANY - looked + 1]:
                looked += 1
                if not entry.is_dir(follow_symlinks=False):
                    found.append(here + entry.name)
                elif entry.name != ".git":
                    folders.append(f"{here}{entry.name}/")
    return found[:MANY], looked > MANY or bool(folders)


def settings(repo: Repository) -> Iterator[Folder]:
    """Yield where files of settings lie: of the repository, of the person's other worktrees, of submodules."""
    yield Folder("", repo.common, repo.common, _SETTINGS)
    for entry in checkouts.linked(repo):
        yield Folder(f"worktrees/{entry.name}", entry, repo.common, ("config.worktree",))
    for name in _modules(repo.common):
        yield Folder(name, repo.common / name, repo.common, _SETTINGS)


def hooks(repo: Repository) -> Iterator[Folder]:
    """Yield the repository's folders of hooks and of attributes, and those of its submodules."""
    for name in ("hooks", *(f"{module}/hooks" for module in _modules(repo.common))):
        yield Folder(name, repo.common / name, repo.common)
    for name, file in (("info", "attributes"), ("objects/info", "alternates")):
        yield Folder(name, repo.common / name, repo.common, (file,))


def named_hooks(repo: Repository) -> Iterator[Folder]:
    """Yield the folders that core.hooksPath names; a relative one is another in each of the person's checkouts."""
    out = git.run(repo, "config", "-z", "--type=path", "--get-all", "core.hooksPath", ok=(0, 1))
    tops = {
        "" if checkout.name == "checkout" else f" of {checkout.name}": checkout.top
        for checkout in checkouts.find(repo)[0]
    }
    for path in dict.fromkeys(os.path.normpath(os.fsdecode(path)) for path in out.split(b"\0") if path):
        if os.path.isabs(path):
            if path != os.devnull:  # Relay's own, by which its git runs none
                yield Folder(path, Path(path), None)
            continue
        for whose, top in tops.items():
            place = os.path.normpath(top / path)
            inside = not path.startswith("..")
            yield Folder(f"hooks path{whose}/{path}", Path(place), top) if inside else Folder(place, Path(place), None)


def _modules(common: Path) -> list[str]:
    """Return the repositories of submodules, by name in the common folder, those within them too."""
    found: list[str] = []
    folders, looked = ["modules"], 0
    while folders and looked < MANY:
        here, looked = folders.pop(), looked + 1
        with suppress(OSError), os.scandir(common / here) as entries:
            for name in sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False)):
                whole = os.path.lexists(common / here / name / "HEAD")
                found += [f"{here}/{name}"] * whole
                folders.append(f"{here}/{name}/modules" if whole else f"{here}/{name}")
    return found


def locks(common: Path) -> list[str]:
    """Return the lock files of git that stand still, by name in the common folder; a git at work gets time to end."""
    for wait in (0.1, 0.2, 0.4, 0.8, 0.0):
        found = sorted(os.path.relpath(path, common) for path in _locks(common))
        if not found or not wait:
            break
        clock.pause(wait)
    return found


def _locks(common: Path) -> Iterator[Path]:
    yield from common.glob("*.lock")
    yield from common.glob("worktrees/*/*.lock")
    for where, _, names in os.walk(common / "refs"):
        yield from (Path(where, name) for name in names if name.endswith(".lock"))


def home() -> dict[str, Path]:
    """Return the files of the person's own settings, and of the machine's, by their names in a fingerprint."""
    user = Path(os.path.expanduser("~"))
    config = Path(os.environ.get("XDG_CONFIG_HOME") or user / ".config")
    return {
        "home/.gitconfig": user / ".gitconfig",
        "home/.config/git/config": config / "git" / "config",
        "/etc/gitconfig": Path("/etc/gitconfig"),
    }


def included(repo: Repository, paths: Iterable[Path]) -> dict[str, str]:
    """Digest the files that files of settings include, under whatever condition, and that those include again."""
    found: dict[str, str] = {}
    waiting = list(paths)
    while waiting:
        for path in _includes(repo, waiting.pop(0)):
            name = f"config include {git.label(path)}"
            if len(found) == _INCLUDED and name not in found:
                return found | {"config include": f"more than {_INCLUDED} files: the others are not watched"}
            if name not in found:
                found[name] = digest(path)
                waiting.append(Path(path))
    return found


def _includes(repo: Repository, path: Path) -> Iterator[str]:
    try:
        data = files.read(Path(os.path.realpath(path)))
        if b"include" not in data.lower():  # git need not be asked
            return
        asked = ("--file", "-", "--no-includes", "-z", "--get-regexp", _INCLUDES)
        out = git.run(repo, "config", *asked, stdin=data, ok=(0, 1))
    except (OSError, RelayError):
        return
    for entry in filter(None, out.split(b"\0")):
        named = os.path.expanduser(os.fsdecode(entry.partition(b"\n")[2]))
        if named:
            yield os.path.normpath(path.parent / named)
