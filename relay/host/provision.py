"""What makes a fresh worktree fit to work in: copied and linked files, submodules, LFS, set-up commands (row 1).

A new worktree has tracked files alone. Only ignored files are copied, nothing is ever overwritten, and what was put
there is remembered, because it is never committed (row 19). A problem here is the set-up's, not the agent's. Its log
holds no secret.
"""

import os
import secrets
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import drivers, files, git, gitenv, proc, redact
from relay.host.jail import cell as cells
from relay.host.jail.cell import Cell
from relay.host.repository import Repository
from relay.terms import Limits, Worktree

PUT: Final = "relay-put"
"""In the worktree's entry: the paths that were copied or linked."""
IGNORED: Final = "relay-ignored"
"""In the worktree's entry: the files that git did not see when the set-up had ended."""
_LONGEST: Final = 256 << 20
"""Bytes of a stored list; a name takes some sixty."""
INCLUDE: Final = ".worktreeinclude"


def remember(git_dir: Path, name: str, paths: Iterable[str]) -> None:
    """Store a list of paths in the worktree's entry."""
    files.write(git_dir / name, b"".join(os.fsencode(path) + b"\0" for path in paths))


def recall(git_dir: Path, name: str) -> list[str]:
    """Return a stored list; an empty one when it is gone."""
    with suppress(OSError, RelayError):
        return [os.fsdecode(path) for path in files.read(git_dir / name, _LONGEST).split(b"\0") if path]
    return []


def named(settings: Worktree) -> dict[str, str]:
    """Return what `[worktree] env` names of the person's environment: for all that Relay itself runs in a worktree."""
    return {name: os.environ[name] for name in settings.env if name in os.environ}


def fit(
    repo: Repository,
    top: Path,
    git_dir: Path,
    settings: Worktree,
    log: Path,
    cell: Cell | None = None,
    base: str | None = None,
) -> str:
    """Do everything that `settings` ask for, in order; return the first problem, or nothing. Output goes to `log`.

    Submodules and LFS are fetched with the person's logins, so only from where `base`, a commit, says.
    """
    put: list[str] = []
    source = repo.top or repo.main_top
    try:
        problem = "" if source is None else _bring(repo, source, top, settings, put, log)
    finally:
        remember(git_dir, PUT, put)
    commands: list[str] = []
    if settings.submodules and (paths := _submodules(repo, top, base)):
        commands.append(f"git submodule update --init --recursive -- {shlex.join(paths)}")
    if settings.lfs:
        if base is not None and _stands(top, ".lfsconfig") != git.blob(repo, base, ".lfsconfig"):
            return "`.lfsconfig` is not the base's, and `git lfs pull` would go where it says"
        commands.append("git lfs pull")
    for number, command in enumerate((*commands, *settings.setup)):
        if problem:
            break
        # git's own steps get hardened settings; what the user wrote runs as the user would run it
        problem = _command(repo, top, command, settings, log, hardened=number < len(commands), cell=cell)
    return problem


def _submodules(repo: Repository, top: Path, base: str | None) -> list[str]:
    """Return the paths of the submodules whose name and address are the base's; without a base, of all."""
    here = _listed(repo, _stands(top, ".gitmodules"))
    known = here if base is None else _listed(repo, git.blob(repo, base, ".gitmodules"))
    return [values["path"] for name, values in here.items() if known.get(name) == values and "path" in values]


def _stands(top: Path, name: str) -> bytes | None:
    try:
        return files.read_below(top, name)
    except (OSError, RelayError):
        return None


def _listed(repo: Repository, modules: bytes | None) -> dict[str, dict[str, str]]:
    """Return the settings of each submodule in a `.gitmodules`."""
    found: dict[str, dict[str, str]] = {}
    if modules is None:
        return found
    listed = git.run(repo, "config", "--file", "-", "--no-includes", "--list", "-z", stdin=modules, ok=(0, 128))
    for entry in filter(None, listed.split(b"\0")):
        key, _, value = os.fsdecode(entry).partition("\n")
        section, _, rest = key.partition(".")
        name, _, field = rest.rpartition(".")
        if section == "submodule" and name:
            found.setdefault(name, {})[field] = value
    return found


def _bring(repo: Repository, source: Path, top: Path, settings: Worktree, put: list[str], log: Path) -> str:
    """Copy and link from the user's checkout `source`; its own `.worktreeinclude` counts, not a branch's."""
    include: list[str] = []
    with suppress(FileNotFoundError):
        include = files.read_below(source, INCLUDE, 1 << 20).decode("utf-8", "surrogateescape").splitlines()
    for pattern in settings.copy:
        found = _ignored(repo, source, [pattern])
        if not found:
            return f"`copy` names `{git.label(pattern)}`, and no ignored file of `{source}` matches it"
        _copy_all(source, top, found, put, log)
    if include:
        _copy_all(source, top, _ignored(repo, source, include), put, log)
    for name in settings.link:
        target = source / name
        if not target.exists():
            return f"`link` names `{git.label(name)}`, and `{source}` has no such path"
        if _place(top, name, log):
            (top / name).symlink_to(target, target_is_directory=target.is_dir())
            put.append(name)
            say(log, f"linked {git.label(name)}")
    return ""


def _ignored(repo: Repository, source: Path, patterns: Sequence[str]) -> list[str]:
    """Return the untracked files of `source` that match `patterns` (as in .gitignore) and that git ignores."""
    env = {"GIT_DIR": str(repo.git_dir), "GIT_WORK_TREE": str(source)}
    list_ignored = ("-C", str(source), "ls-files", "-z", "-o", "-i")
    off = drivers.find(repo).off
    with tempfile.NamedTemporaryFile(prefix="relay-") as file:
        file.write("\n".join(patterns).encode("utf-8", "surrogateescape"))
        file.flush()
        wanted = git.run(repo, *list_ignored, f"--exclude-from={file.name}", env=env, config=off)
    ignored = set(git.run(repo, *list_ignored, "--exclude-standard", env=env, config=off).split(b"\0"))
    return [os.fsdecode(path) for path in wanted.split(b"\0") if path and path in ignored]


def _copy_all(source: Path, top: Path, found: Sequence[str], put: list[str], log: Path) -> None:
    for name in found:
        if stat.S_ISREG(os.lstat(source / name).st_mode) and _place(top, name, log):
            shutil.copy2(source / name, top / name, follow_symlinks=False)
            put.append(name)
            say(log, f"copied {git.label(name)}")


def _place(top: Path, name: str, log: Path) -> bool:
    """Make room for `name` below `top`; say no when something is there, or a link would lead out of the worktree."""
    place = top / name
    if os.path.lexists(place):
        say(log, f"kept {git.label(name)}: it is there already")
        return False
    if not place.parent.resolve().is_relative_to(top):
        raise RelayError(
            f"`{git.label(name)}` would be put outside the worktree", hint="correct [worktree] in relay.toml"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    return True


def _command(
    repo: Repository, top: Path, command: str, settings: Worktree, log: Path, *, hardened: bool, cell: Cell | None
) -> str:
    # the nonce: so that what it leaves running is found and ended
    extra = {**named(settings), "RELAY_NONCE": secrets.token_hex(8)}
    if hardened:
        extra |= gitenv.settings(drivers.find(repo).off)
    say(log, f"$ {command}")
    limits = Limits(seconds=settings.minutes * 60)
    if hardened:  # in no cell, which would show the common folder but to read; and with the person's way to a remote
        ended = proc.run(command, cwd=str(top), env=proc.clean_env(extra), limits=limits)
    else:
        ended = cells.run(cell, command, folder=top, env=extra, limits=limits)
    how = f"exited {ended.code}" if ended.ended == "exit" else f"was ended: {ended.ended} after {ended.seconds:.0f} s"
    say(log, f"{ended.text.rstrip()}\n{how}".lstrip())
    return "" if ended.ended == "exit" and ended.code == 0 else f"`{command}` {how}"


def say(log: Path, text: str) -> None:
    """Add lines to the log of a set-up; no secret stands in it."""
    log.touch(0o600)
    with log.open("a", encoding="utf-8", errors="replace") as file:
        file.write(redact.own().text(text) + "\n")
