"""What in a repository, or in the shell, works otherwise in a leg's worktree than in the checkout."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from relay.errors import RelayError
from relay.host import files, git
from relay.host.repository import Repository
from relay.record.config import Config
from relay.ways import signing

SHOWN: Final = 5
"""How many paths are named; the rest are counted."""

ATTRIBUTES: Final = 50
"""How many .gitattributes files are read for a filter."""

Found = tuple[Literal["ok", "warn", "FAIL"], str, str]


def look(repo: Repository, commit: str, settings: Config) -> Iterator[Found]:
    """Look at everything that a leg's worktree does not have, or has otherwise."""
    yield from _hooks(repo, commit)
    yield from _signing(repo, commit)
    yield from _parts(repo, commit, settings)
    yield from _hidden(repo)
    yield from _dirty(repo)
    yield from _environments(repo, settings)
    if (repo.common / "shallow").exists():
        hint = "git fetch --unshallow"
        yield "warn", "the clone is shallow: a base outside of it has no common ancestor with the work", hint


def _hooks(repo: Repository, commit: str) -> Iterator[Found]:
    """Say which hooks do not run: Relay's commits run none, and a relative folder is not there."""
    hint = "put what they check under [checks] in relay.toml"
    folder = _setting(repo, "core.hooksPath")
    where = Path(folder).expanduser() if folder else repo.common / "hooks"
    if not where.is_absolute():
        if not git.paths(repo, commit, os.path.normpath(folder)):
            text = f"core.hooksPath is `{folder}`, relative and not committed: no hook runs in a linked worktree"
            yield "warn", text, hint
            return
        where = (repo.top or repo.common) / folder
    names = ("pre-commit", "commit-msg", "prepare-commit-msg", "pre-merge-commit")
    active = [name for name in names if os.access(where / name, os.X_OK)]
    if active:
        yield "warn", f"hooks that do not run for Relay's commits: {', '.join(active)}", hint


def _signing(repo: Repository, commit: str) -> Iterator[Found]:
    """Say whether what ships can be signed, where git would sign it."""
    if not signing.wanted(repo):
        return
    try:
        signing.attempt(repo, commit)
    except RelayError as error:
        yield "FAIL", error.message, error.hint
    else:
        yield "ok", "commit.gpgSign is on, and the key signs: so will every commit that ships", ""


def _parts(repo: Repository, commit: str, settings: Config) -> Iterator[Found]:
    """Say that submodules and LFS files would be missing from a worktree."""
    names = git.paths(repo, commit)
    if ".gitmodules" in names and not settings.worktree.submodules:
        yield "warn", "the repository has submodules, and a leg's worktree does not", "[worktree] submodules = true"
    attributes = [name for name in names if name == ".gitattributes" or name.endswith("/.gitattributes")]
    filtered = any(b"filter=lfs" in (git.blob(repo, commit, name) or b"") for name in attributes[:ATTRIBUTES])
    if filtered and not settings.worktree.lfs:
        yield "warn", "the repository has LFS files, and a leg's worktree only their pointers", "[worktree] lfs = true"


def _hidden(repo: Repository) -> Iterator[Found]:
    """Name the files whose changes git was told not to see: a leg has them as committed (pitfalls row 112)."""
    if repo.top is None:
        return
    listed = git.run(repo, "-C", str(repo.top), "ls-files", "-v", "-z").split(b"\0")
    hidden = [os.fsdecode(entry[2:]) for entry in listed if entry[:1] == b"S" or entry[:1].islower()]
    if hidden:
        text = f"git does not look at {_named(hidden)} (skip-worktree or assume-unchanged): a leg has them as committed"
        yield "warn", text, "git update-index --no-skip-worktree --no-assume-unchanged PATH"


def _dirty(repo: Repository) -> Iterator[Found]:
    """Name the changes that a run would not see."""
    paths = git.dirty(repo)
    if paths:
        hint = "commit what the run shall see: git status"
        yield "warn", f"a run starts from a commit and does not see {_named(paths)}", hint
    elif repo.top is not None:
        yield "ok", "the checkout is clean", ""


def _environments(repo: Repository, settings: Config) -> Iterator[Found]:
    """Say that a shared environment leads back into the checkout: tests would pass on other code (pitfalls row 7)."""
    top = repo.main_top or repo.top
    if top is None:
        return
    hint = '[worktree] setup = ["python3 -m venv .venv", ".venv/bin/pip install -e ."]'
    active = os.environ.get("VIRTUAL_ENV", "")
    if active and _leads_into(Path(active), top):
        text = f"`{active}` is active and has an editable install of this checkout: checks would import that"
        yield "warn", text, hint
    for name in (*settings.worktree.link, *settings.worktree.copy):
        if (top / name / "pyvenv.cfg").exists():
            yield "warn", f"`{name}` in [worktree] is a Python environment, which leads back to where it was made", hint


def _leads_into(environment: Path, top: Path) -> bool:
    """Tell whether a `.pth` file of an environment names a folder of the checkout."""
    for path in environment.glob("lib*/python*/site-packages/*.pth"):
        try:
            lines = files.read(path, 1 << 20).decode("utf-8", "replace").splitlines()
        except (OSError, RelayError):
            continue
        if any(line.startswith("/") and Path(line).resolve().is_relative_to(top.resolve()) for line in lines):
            return True
        if any("__editable__" in line for line in lines) and path.name.startswith("__editable__"):
            return _finder_leads_into(path, top)
    return False


def _finder_leads_into(path: Path, top: Path) -> bool:
    """Tell whether the finder beside an `__editable__` file names the checkout: newer set-ups leave a program there."""
    for finder in path.parent.glob("__editable__*_finder.py"):
        try:
            if str(top) in files.read(finder, 1 << 20).decode("utf-8", "replace"):
                return True
        except (OSError, RelayError):
            continue
    return False


def _setting(repo: Repository, name: str) -> str:
    """Return a setting as the person has it, whatever Relay itself sets for its own calls of git."""
    words = os.fsdecode(git.run(repo, "config", "--show-scope", "-z", "--get-all", name, ok=(0, 1))).split("\0")
    values = [value for scope, value in zip(words[::2], words[1::2], strict=False) if scope != "command"]
    return values[-1] if values else ""


def _named(paths: list[str]) -> str:
    """Name the first paths, and count the others."""
    shown = ", ".join(f"`{git.label(path)}`" for path in paths[:SHOWN])
    return shown + (f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else "")
