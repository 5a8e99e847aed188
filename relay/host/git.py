"""Git, as one program with full argument lists: the only importer of GitPython, and of it the command layer alone.

Every call is hardened the same way (pitfalls "Git-call contract", sandbox.md section 8.2): an absolute program, the
folder `/`, explicit GIT_DIR and GIT_COMMON_DIR, none of the caller's GIT_* variables except those that say who writes
and how to reach a remote, no hooks, no fsmonitor, no pager, no prompt, no terminal, no background gc, objects and refs
synced to disk, a time limit, and a process group that is ended when the limit or a signal comes.

Settings travel as GIT_CONFIG_COUNT/KEY/VALUE, which any name survives, and which a checkout cannot override.
Paths in answers are text with surrogate escapes, so that any name can be handed back to git unchanged.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, BinaryIO, Final

from relay.errors import Exit, RelayError
from relay.host import clock, gitenv, patch, pids, signals
from relay.host.gitenv import Config
from relay.host.repository import Repository
from relay.terms import Change, Struct

_DIFF: Final = ("diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
_LINGER: Final = 1.0
_WAITS: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds between tries while another git holds a lock: about six in all (pitfalls rows 29, 42, 117)."""


class Identity(Struct, frozen=True, kw_only=True):
    """Who stands in a commit."""

    name: str
    email: str


NOBODY: Final = Identity(name="relay", email="relay@localhost")

label = patch.label
Answer = gitenv.Answer
failed = gitenv.failed


@cache
def _layer() -> Any:  # noqa: ANN401  GitPython is not imported for its types either
    """Import GitPython without letting it search for git itself, or fail when there is none (pitfalls, GitPython)."""
    wanted = {"GIT_PYTHON_REFRESH": "quiet", "GIT_PYTHON_GIT_EXECUTABLE": gitenv.program()}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        import git  # 65 ms
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return git.Git(os.sep)


def call(
    repo: Repository,
    *args: str,
    stdin: bytes | BinaryIO = b"",
    env: Mapping[str, str] | None = None,
    config: Config = (),
    timeout: float = 60,
) -> Answer:
    """Run git once and return what it said, whatever the code; tried again only while a lock is held.

    `env` is added last, so it can name another GIT_DIR. `RelayError` when git takes longer than `timeout` seconds or
    the disk is full.
    """
    ours = gitenv.ours(repo, env or {}, config)
    for wait in (*_WAITS, None):
        answer = _once(args, stdin, ours, timeout)
        if wait is None or answer.code == 0 or ".lock'" not in answer.err:
            break
        time.sleep(wait)
    if "No space left on device" in answer.err:
        raise RelayError(
            f"no space left on the disk (git `{gitenv.verb(args)}`)",
            hint=f"see: df -h {repo.common}",
            exit_code=Exit.HUMAN,
        )
    return answer


def _once(args: tuple[str, ...], stdin: bytes | BinaryIO, ours: dict[str, str], limit: float) -> Answer:
    # GitPython starts from os.environ and can only add, so what must go is removed by env(1): names, never values.
    alien = gitenv.alien(ours)
    remove = ["/usr/bin/env", *(f"--unset={name}" for name in alien)] if alien else []
    # As a process: GitPython's own time limit is a thread that outlives an interruption and finds children by `pgrep`.
    command = [*remove, gitenv.program(), *args]
    source, given = (subprocess.PIPE, stdin) if isinstance(stdin, bytes) else (stdin, None)
    how = {"istream": source, "as_process": True, "shell": False, "env": ours, "start_new_session": True}
    layer, child = _layer(), None
    try:
        with signals.held():
            running = layer.execute(command, **how)
            child = running.proc  # `running` stays named: GitPython ends the process when it goes
        out, err = child.communicate(given, timeout=limit)
    except BaseException as error:
        with signals.held(), suppress(ProcessLookupError):
            if child is not None:
                os.killpg(child.pid, signal.SIGKILL)
                pids.let_go(child, _LINGER)
        if isinstance(error, subprocess.TimeoutExpired):
            raise RelayError(
                f"git `{gitenv.verb(args)}` took longer than {limit:g} s and was ended", exit_code=Exit.HUMAN
            ) from error
        raise
    return Answer(code=child.returncode, out=out, err=err.decode("utf-8", "replace"))


def run(
    repo: Repository,
    *args: str,
    stdin: bytes = b"",
    ok: tuple[int, ...] = (0,),
    env: Mapping[str, str] | None = None,
    config: Config = (),
    timeout: float = 60,
) -> bytes:
    """Run git and return its output; a code outside `ok` is a `RelayError` with git's first line."""
    answer = call(repo, *args, stdin=stdin, env=env, config=config, timeout=timeout)
    if answer.code not in ok:
        raise failed(answer, gitenv.verb(args))
    return answer.out


def code(repo: Repository, *args: str) -> int:
    """Run git for its exit code alone."""
    return call(repo, *args).code


def _line(data: bytes) -> str:
    return os.fsdecode(data.rstrip(b"\n"))


def _plain(value: str) -> str:
    """Return `value` unless git could read it as an option: no guard of GitPython covers this layer."""
    if not value or value.startswith("-") or "\0" in value:
        raise RelayError(f"`{value}` cannot be the name of a commit or a ref")
    return value


def resolve(repo: Repository, rev: str) -> str | None:
    """Return the full commit id of `rev`, or None. Use full names: a tag hides a branch of its name (row 95)."""
    if not rev or "\0" in rev:
        return None
    answer = call(repo, "rev-parse", "--verify", "-q", "--end-of-options", f"{rev}^{{commit}}")
    return _line(answer.out) if answer.code == 0 else None


def full_name(repo: Repository, name: str) -> str | None:
    """Return the full ref that a person means by `name`: a branch before a remote's branch before a tag, or None."""
    known = (
        (name,) if name.startswith("refs/") else tuple(f"refs/{kind}/{name}" for kind in ("heads", "remotes", "tags"))
    )
    return next((ref for ref in known if code(repo, "show-ref", "--verify", "-q", "--", ref) == 0), None)


def tree(repo: Repository, commit: str) -> str:
    """Return the tree id of `commit`."""
    return _line(run(repo, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}"))


def head_branch(repo: Repository) -> str | None:
    """Return the branch that is checked out, `refs/heads/main`, or None when HEAD is detached (row 60)."""
    return _line(run(repo, "symbolic-ref", "-q", "HEAD", ok=(0, 1))) or None


def blob(repo: Repository, commit: str, path: str) -> bytes | None:
    """Return the bytes of the file `path` at `commit`, the target of a link, or None where no file is."""
    answer = call(repo, "cat-file", "blob", f"{_plain(commit)}:{path}")
    return answer.out if answer.code == 0 else None


def paths(repo: Repository, commit: str, *prefixes: str) -> list[str]:
    """Return the paths of all files at `commit`, or those at or below `prefixes` (plain paths, no patterns)."""
    out = run(repo, "ls-tree", "-r", "-z", "--name-only", "--full-tree", _plain(commit), "--", *prefixes)
    return [os.fsdecode(name) for name in out.split(b"\0") if name]


def refs(repo: Repository, prefix: str = "refs/") -> dict[str, str]:
    """Return every ref below `prefix` with the object it names."""
    out = run(repo, "for-each-ref", "--format=%(objectname) %(refname)", "--", prefix.rstrip("/"))
    pairs = (line.split(" ", 1) for line in os.fsdecode(out).splitlines())
    return {name: oid for oid, name in pairs}


def update_ref(repo: Repository, ref: str, new: str, old: str | None) -> None:
    """Move `ref` from `old` to `new`, or make it where `old` is None; `RelayError` (gate) when it stands elsewhere."""
    _move(repo, ref, old or "nowhere", "update-ref", "--no-deref", _plain(ref), _plain(new), old or "")


def put_ref(repo: Repository, ref: str, new: str) -> None:
    """Let `ref`, which is Relay's own, point at `new`, wherever it pointed; making the same ref twice is no error."""
    old = resolve(repo, ref)
    if old != new:
        update_ref(repo, ref, new, old)


def delete_ref(repo: Repository, ref: str, old: str) -> None:
    """Delete `ref` if it is at `old`; `RelayError` (gate) when it stands elsewhere."""
    _move(repo, ref, old, "update-ref", "--no-deref", "-d", _plain(ref), _plain(old))


def _move(repo: Repository, ref: str, old: str, *args: str) -> None:
    answer = call(repo, *args)
    if answer.code and (
        "but expected" in answer.err or "already exists" in answer.err or "unable to resolve" in answer.err
    ):
        raise RelayError(f"`{ref}` does not stand at `{old}`", hint=f"see: git show-ref {ref}", exit_code=Exit.GATE)
    if answer.code:
        raise failed(answer, args[0])


def exists(repo: Repository, oid: str) -> bool:
    """Tell whether the object is in the repository."""
    return code(repo, "cat-file", "-e", _plain(oid)) == 0


def commit_tree(repo: Repository, tree: str, parents: Iterable[str], message: str, identity: Identity) -> str:
    """Write a commit and return its id: no hook, no signature, dated by Relay's clock (pitfalls rows 20, 21, 23)."""
    when = f"{int(clock.now().timestamp())} +0000"
    who = {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in (("NAME", identity.name), ("EMAIL", identity.email), ("DATE", when))
    }
    parent = [word for commit in parents for word in ("-p", _plain(commit))]
    text = message.replace("\0", "").encode("utf-8", "backslashreplace")
    return _line(run(repo, "commit-tree", "-F", "-", *parent, _plain(tree), stdin=text, env=who))


def identity(repo: Repository) -> Identity:
    """Return whom the user's settings name as author; `NOBODY` where they name nobody, never a guess (row 24)."""
    answer = call(repo, "var", "GIT_AUTHOR_IDENT", config=(("user.useConfigOnly", "true"),))
    found = re.match(r"(.+) <(.+)> \d+ [+-]\d+$", _line(answer.out)) if answer.code == 0 else None
    return Identity(name=found[1], email=found[2]) if found else NOBODY


def ancestor(repo: Repository, a: str, b: str) -> bool:
    """Tell whether `a` is `b` or one of its ancestors."""
    answer = call(repo, "merge-base", "--is-ancestor", _plain(a), _plain(b))
    if answer.code not in {0, 1}:
        raise failed(answer, "merge-base")
    return answer.code == 0


def merge_base(repo: Repository, a: str, b: str) -> str | None:
    """Return the best common ancestor, or None where the two share no history."""
    return _line(run(repo, "merge-base", _plain(a), _plain(b), ok=(0, 1))) or None


def merge_tree(repo: Repository, ours: str, theirs: str, *, marked: bool = False) -> tuple[str | None, tuple[str, ...]]:
    """Merge two commits without any checkout; return the tree, or None and the conflicting paths (row 31).

    With `marked` a conflict has a tree as well, with git's markers in its files.
    """
    answer = call(
        repo, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", _plain(ours), _plain(theirs)
    )
    if answer.code not in {0, 1}:
        raise failed(answer, "merge-tree")
    tree_id, *conflicts = (part for part in answer.out.split(b"\0") if part.strip())
    found = tuple(os.fsdecode(path) for path in conflicts) if answer.code else ()
    return (_line(tree_id) if marked or not answer.code else None), found


def diff(repo: Repository, a: str, b: str) -> bytes:
    """Return the patch from `a` to `b`, whatever diff.* says; binary files are named, not shown (row 97)."""
    shape = ("-p", "-M", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
    return run(repo, *_DIFF, *shape, _plain(a), _plain(b))


def numstat(repo: Repository, a: str, b: str) -> tuple[Change, ...]:
    """Return each changed path with its counted lines; a rename is a removal and an addition. Paths are `label`s."""
    return patch.counts(run(repo, *_DIFF, "--numstat", "-z", "--no-renames", _plain(a), _plain(b)))


def changed_lines(repo: Repository, a: str, b: str) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return, for each file that `b` has, the first and last line of every changed range; a removal has none."""
    shape = ("-p", "-U0", "--no-renames", "--no-color", "--dst-prefix=b/")
    return patch.ranges(run(repo, *_DIFF, *shape, _plain(a), _plain(b)))


def dirty(repo: Repository) -> list[str]:
    """Return the paths of the checkout that differ from its commit, untracked ones too; ignored ones are left out."""
    if repo.top is None:
        return []
    shape = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    records = run(repo, "-C", str(repo.top), "status", *shape).split(b"\0")
    return [os.fsdecode(record[3:]) for record in records if record]
