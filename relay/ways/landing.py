"""Moving a branch to a commit, whether or not it is checked out, dirty or not; nobody's uncommitted work changes.

Where it is checked out, that checkout goes along first, as by `git checkout`, which refuses as a whole rather than
touch a changed or an ignored file. It runs beside the person's HEAD, in a git folder of its own that shares the index:
so it writes no HEAD, no ORIG_HEAD and no reflog of the person's. Then the branch moves, by compare-and-swap; where it
is not where it was any more, the checkout goes back. If Relay is killed in between, the next one takes it back.
"""

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from relay.errors import RelayError
from relay.host import git, scratch, signals
from relay.host.gitenv import Answer
from relay.host.repository import Repository
from relay.ways import checkouts
from relay.ways.base import MovedError, RefusedError
from relay.ways.checkouts import Checkout

SECONDS: Final = 600.0
"""How long a checkout may take."""
_OWN: Final = ("config.worktree", "info/sparse-checkout")
"""What else of a checkout's own git folder says how its files are laid out."""


def real(repo: Repository, ref: str) -> None:
    """Refuse a branch that is only another name of one: moving it would cut it off from that."""
    answer = git.call(repo, "symbolic-ref", "-q", ref)
    if answer.code == 0:
        target = _short(answer.out.decode("utf-8", "surrogateescape").strip())
        raise RelayError(f"`{_short(ref)}` is only another name of `{target}`", hint=f"name that one: --into {target}")


def land(repo: Repository, ref: str, commit: str, old: str) -> None:
    """Move `ref` from `old` to `commit`, a descendant of it; `RefusedError` where that cannot be, as it was before."""
    real(repo, ref)
    checkout = _one(repo, ref)
    if checkout is None or checkout.folder is None:
        move(repo, ref, commit, old)
        return
    there, name = msgspec.structs.replace(repo, git_dir=checkout.git_dir, top=checkout.folder), _short(ref)
    if git.resolve(repo, ref) != old:
        raise MovedError(f"branch `{name}` does not stand at `{old}`: it moved in the same moment")
    _refuse_removed(there, name, old, commit)
    # A signal waits, since killed half-way git would leave the person's checkout half-way.
    with signals.held(), _beside(there, old) as beside:
        answer = _go(there, beside, commit)
        if answer.code:
            raise RefusedError(f"`{checkout.folder}` has `{name}` checked out and cannot go along: {_said(answer)}")
        try:
            if _one(repo, ref) != checkout:
                raise MovedError(f"`{checkout.folder}` left `{name}` in the same moment")
            move(there, ref, commit, old)
        except RelayError as error:
            if _go(there, beside, old).code:
                raise RefusedError(f"{error.message}; but the files in `{checkout.folder}` are on the way") from error
            raise


def back(repo: Repository, ref: str, commit: str, old: str) -> str:
    """Take a checkout back to `old` that went along to `commit` for a Relay that was killed before the branch moved.

    Returns what had to stay: what a person changed there since then is never touched.
    """
    try:
        checkout = _one(repo, ref) if git.resolve(repo, ref) == old else None
    except RefusedError:  # a person has begun something else there since
        return ""
    if checkout is None or checkout.folder is None:
        return ""
    there = msgspec.structs.replace(repo, git_dir=checkout.git_dir, top=checkout.folder)
    if git.call(there, "diff-index", "--cached", "--quiet", old, "--").code == 0:
        return ""
    with signals.held(), _beside(there, commit) as beside:
        answer = _go(there, beside, old)
    return f"but the files in `{checkout.folder}` are on the way: {_said(answer)}" if answer.code else ""


def _refuse_removed(there: Repository, name: str, old: str, commit: str) -> None:
    """Refuse to bring a file back that a person removed and did not commit: git takes that for no change of theirs."""
    removed = git.run(there, "-C", str(there.top), "ls-files", "--deleted", "-z").split(b"\0")
    changed = git.run(
        there, "diff-tree", "-r", "--no-renames", "--diff-filter=d", "--name-only", "-z", old, commit, "--"
    )
    both = sorted((set(removed) - {b""}) & set(changed.split(b"\0")))
    if both:
        text = f"`{there.top}` has `{name}` checked out, without the file `{git.label(both[0])}` that is changed"
        raise RefusedError(text, hint=f"commit that it is gone, or: git -C {shlex.quote(str(there.top))} restore FILE")


def move(repo: Repository, ref: str, commit: str, old: str) -> None:
    """Move `ref` alone, if it stands at `old`; where the HEAD of `repo` names it, both have it in their reflogs."""
    answer = git.call(repo, "update-ref", "--no-deref", "-m", "relay: shipped", ref, commit, old)
    if answer.code and git.resolve(repo, ref) != old:
        raise MovedError(f"branch `{_short(ref)}` does not stand at `{old}`: it moved in the same moment")
    if answer.code:
        raise RefusedError(f"branch `{_short(ref)}` cannot be moved: {' '.join(answer.err.split())[:500]}")


def _one(repo: Repository, ref: str) -> Checkout | None:
    """Return the one checkout that has the branch, with nothing half done in it; None where none has it."""
    found, name = checkouts.of(repo, ref), _short(ref)
    for checkout in found:
        at = checkout.folder or checkout.git_dir
        where = shlex.quote(str(at))
        if checkout.doing:
            end = "bisect reset" if checkout.doing == "bisect" else f"{checkout.doing} --continue, or --abort"
            text = f"`{at}` is in the middle of a {checkout.doing} on `{name}`"
            raise RefusedError(text, hint=f"end it first: git -C {where} {end}")
        if checkout.folder is None:
            raise RefusedError(f"`{name}` is checked out away from `{at}`: approve it from that checkout")
        if not checkout.folder.is_dir():
            if (checkout.git_dir / "locked").exists():  # on a disk that is not mounted now, as a rule
                text = f"`{at}` has `{name}` checked out, is not there now, and is locked to be kept"
                raise RefusedError(text, hint=f"bring it back, or: git worktree unlock {where} && git worktree prune")
            raise RefusedError(f"`{at}` had `{name}` checked out and is gone: git worktree prune")
    if len(found) > 1:
        others = " and ".join(f"`{checkout.folder}`" for checkout in found)
        hint = f"git -C {shlex.quote(str(found[-1].folder))} switch --detach"
        raise RefusedError(f"`{name}` is checked out in {others}, and only one could go along", hint=hint)
    return found[0] if found else None


@contextmanager
def _beside(there: Repository, head: str) -> Iterator[Path]:
    """Make a git folder whose HEAD is detached at `head`, for a checkout whose own HEAD and ORIG_HEAD stay alone."""
    with scratch.folder("land") as name:
        folder = Path(name)
        (folder / "HEAD").write_text(f"{head}\n", encoding="ascii")
        (folder / "info").mkdir()
        for own in _OWN:
            if (there.git_dir / own).is_file():
                shutil.copyfile(there.git_dir / own, folder / own)
        for shared in there.git_dir.glob("sharedindex.*"):
            (folder / shared.name).symlink_to(shared)
        yield folder


def _go(there: Repository, beside: Path, commit: str) -> Answer:
    """Let the files and the index of a checkout go to a commit, from where the HEAD beside it stands."""
    shape = ("--quiet", "--detach", "--no-overwrite-ignore", "--no-recurse-submodules")
    own = {"GIT_DIR": str(beside), "GIT_WORK_TREE": str(there.top), "GIT_INDEX_FILE": str(there.git_dir / "index")}
    return git.call(there, "-C", str(there.top), "checkout", *shape, commit, "--", env=own, timeout=SECONDS)


def _said(answer: Answer) -> str:
    return " ".join(answer.err.split())[:500] or "git refused"


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/")
