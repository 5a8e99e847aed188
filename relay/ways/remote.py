"""Another repository, as this one names it: where its branches stand, and moving one of them by compare-and-swap.

Nothing asks for a password (pitfalls row 33), nothing is ever forced without naming the commit that it replaces
(row 35), no reflog, tag, submodule or tracked branch of the person's is changed by looking (row 62).
"""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import git, scratch
from relay.host.gitenv import Answer
from relay.host.repository import Repository
from relay.terms import Struct
from relay.ways import patience, said
from relay.ways.base import MovedError, RefusedError, UnknownError

LOOK_SECONDS: Final = 60.0
SEND_SECONDS: Final = 900.0
"""How long a look, and a fetch or a push, may take; a hook that runs a suite before a push is in the second."""

_RACE: Final = re.compile(
    r"stale info|fetch first|non-fast-forward|incorrect old value|cannot lock ref|reference already exists"
)
_LOCKED: Final = re.compile(r"cannot lock ref '.*': is at|incorrect old value provided")
_DENIED: Final = re.compile(r"Authentication failed|could not read (?:Username|Password)|Permission denied|40[13]\b")


_HOOK: Final = """\
#!/bin/sh
{hook} "$@" >{log} 2>&1 && : >{done}
code=$?
cat {log} >&2
exit $code
"""
"""Runs the hook as git would; what it leaves in the background holds a file open then, and not git, nor Relay."""


class Hook(Struct, frozen=True, kw_only=True):
    """The person's own hook before a push: its folder, and the clean checkout that it runs in."""

    folder: Path
    checkout: Repository


def address(repo: Repository, name: str) -> str:
    """Return the address that a remote is pushed to; `RelayError` where there is no such remote."""
    answer = _call(repo, "remote", "get-url", "--push", "--", name)
    if answer.code:
        name = said.address(name)  # some write an address there
        known = git.run(repo, "remote").decode("utf-8", "replace").split()
        hint = f"say which in [ship] remote: {', '.join(known)}" if known else f"git remote add {name} URL"
        raise RelayError(f"there is no remote `{name}` to ship to", hint=hint)
    return os.fsdecode(answer.out).strip()


def written(repo: Repository, name: str) -> str:
    """Return the address of a remote as the person wrote it, before git rewrites its beginning."""
    return os.fsdecode(_call(repo, "config", "--get", f"remote.{name}.url").out).strip()


def tip(repo: Repository, name: str, branch: str) -> str | None:
    """Ask where a branch stands; None where it is not there. `RefusedError` when nobody answers."""
    ref = _full(branch)
    answer = _reach(repo, LOOK_SECONDS, "ls-remote", "--refs", "--", address(repo, name), ref)
    if answer.code:
        raise RefusedError(_sentence(name, answer), hint=_hint(name, answer))
    found = dict(line.split("\t", 1)[::-1] for line in os.fsdecode(answer.out).splitlines() if "\t" in line)
    return found.get(ref)


def have(repo: Repository, name: str, branch: str, commit: str) -> None:
    """Let a commit that a branch there stands at be in this repository too, without any ref for it."""
    if git.resolve(repo, commit) is not None:
        return
    shape = ("--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--no-auto-maintenance", "--quiet")
    answer = _reach(repo, SEND_SECONDS, "fetch", *shape, "--", address(repo, name), _full(branch))
    if answer.code:
        raise RefusedError(_sentence(name, answer), hint=_hint(name, answer))
    if git.resolve(repo, commit) is None:
        raise RefusedError(f"`{branch}` on `{name}` does not hold `{commit[:12]}` any more")


def holds(repo: Repository, name: str, branch: str, commit: str) -> bool:
    """Tell whether a commit that a branch there was moved to is had from it; `RefusedError` when nobody answers."""
    if git.resolve(repo, commit) is not None:
        return True
    now = tip(repo, name, branch)
    if now is not None:
        have(repo, name, branch, now)
    return git.resolve(repo, commit) is not None


def push(
    repo: Repository, name: str, commit: str | None, branch: str, was: str | None, hook: Hook | None = None
) -> None:
    """Move a branch there from `was` (None: it is not there yet) to `commit` (None: remove it), or not at all.

    `MovedError` when it stands elsewhere, `RefusedError` with the other side's words when it may not be moved, or the
    hook said no, `UnknownError` when the connection ended before the answer.
    """
    listed = _call(repo, "remote", "get-url", "--push", "--all", name).out.splitlines()
    if len(listed) > 1:
        hint = f'name one: git remote add ship {said.address(os.fsdecode(listed[0]))}, and [ship] remote = "ship"'
        raise RefusedError(f"`{name}` has {len(listed)} addresses to push to, which cannot all move at once", hint=hint)
    ref = _full(branch)
    shape = ("--porcelain", "--no-signed", "--no-follow-tags", "--recurse-submodules=no")
    refused = False
    swap = f"--force-with-lease={ref}:{was or ''}"
    refspec = f"{commit or ''}:{ref}"
    try:
        if hook is None:
            answer = _reach(repo, SEND_SECONDS, "push", *shape, "--no-verify", swap, "--", name, refspec)
        else:
            with _alone(hook) as folder:
                line = ("push", *shape, swap, "--", name, refspec)
                answer = _reach(hook.checkout, SEND_SECONDS, *line, hooks=str(folder))
                refused = not (folder / "done").exists()
    except RefusedError as error:
        raise UnknownError(error.message) from None
    if answer.code == 0:
        return
    verdict = next((line for line in os.fsdecode(answer.out).splitlines() if line.startswith("!")), "")
    if _RACE.search(verdict) or _LOCKED.search(answer.err):
        raise MovedError(f"`{branch}` on `{name}` moved in the same moment")
    words = _words(answer)
    if verdict or _DENIED.search(answer.err) or refused:
        why = said.line(verdict.rpartition("\t")[2])
        raise RefusedError(f"`{name}` did not take it into `{branch}`: {f'{why}: ' * bool(why)}{words}")
    raise UnknownError(_sentence(name, answer), hint=_hint(name, answer))


@contextmanager
def _alone(hook: Hook) -> Iterator[Path]:
    """Make a folder with that hook alone: a push runs others too, once it moves what this repository tracks.

    There is a file `done` in it then, unless the hook did not run or said no.
    """
    with scratch.folder("hook") as folder:
        own, log, done = (
            shlex.quote(str(path)) for path in (hook.folder / "pre-push", folder / "log", folder / "done")
        )
        (folder / "pre-push").write_text(_HOOK.format(hook=own, log=log, done=done), encoding="utf-8")
        (folder / "pre-push").chmod(0o700)
        yield folder


def hooks(repo: Repository) -> Path | None:
    """Return the folder of the person's hooks where one is to run before a push (pitfalls row 110); LFS needs it.

    A folder that is named relative to a checkout is files of the tree, which any implementer could rewrite.
    """
    listed = _call(repo, "config", "--show-scope", "--get-all", "core.hooksPath")
    paths = [
        path
        for scope, _, path in (line.partition("\t") for line in os.fsdecode(listed.out).splitlines())
        if scope != "command"
    ]
    folder = Path(os.path.expanduser(paths[-1])) if paths else repo.common / "hooks"  # noqa: PTH111 - never fails
    inside = repo.main_top is not None and folder.is_relative_to(repo.main_top) and repo.common not in folder.parents
    return folder if folder.is_absolute() and not inside and os.access(folder / "pre-push", os.X_OK) else None


def _full(branch: str) -> str:
    return branch if branch.startswith("refs/") else f"refs/heads/{branch}"


def _call(repo: Repository, *args: str) -> Answer:
    return git.call(repo, "-C", str(repo.main_top or repo.common), *args)


def _reach(repo: Repository, seconds: float, *args: str, hooks: str = os.devnull) -> Answer:
    """Run git towards another repository: nobody is asked for anything, and it ends in time."""
    env = {"GCM_INTERACTIVE": "never", "GIT_HTTP_LOW_SPEED_LIMIT": "1", "GIT_HTTP_LOW_SPEED_TIME": "60"}
    mine = {"GIT_SSH", "GIT_SSH_COMMAND"} & os.environ.keys()
    if not mine and _call(repo, "config", "--get", "core.sshCommand").code:
        env["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes -o ConnectTimeout=20"
    config = (("core.hooksPath", hooks), ("credential.interactive", "false"))
    top = repo.top if hooks != os.devnull else repo.main_top
    within = patience.left(seconds)
    try:
        return git.call(repo, "-C", str(top or repo.common), *args, env=env, config=config, timeout=within)
    except RelayError as error:
        raise RefusedError(error.message, hint=error.hint) from None


def _sentence(name: str, answer: Answer) -> str:
    return f"`{name}` cannot be reached: {_words(answer)}"


def _words(answer: Answer) -> str:
    """Return what git and the other side said, in one line without secrets: the other side's words first."""
    lines = [" ".join(line.split()) for line in answer.err.splitlines() if line.strip()]
    theirs = [line.removeprefix("remote:").strip() for line in lines if line.startswith("remote:")]
    ours = [line for line in lines if not line.startswith(("remote:", "hint:", "To ", "error: failed to push"))]
    heard = "; ".join(dict.fromkeys(line for line in [*theirs, *ours] if line.strip("- ")))
    return said.line(heard or f"git exited {answer.code}", 600)


def _hint(name: str, answer: Answer) -> str:
    if _DENIED.search(answer.err):
        return f"try it yourself: git ls-remote {name}; Relay never asks for a password"
    return f"try it yourself: git ls-remote {name}"
