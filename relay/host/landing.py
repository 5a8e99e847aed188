"""Moving a branch to a commit, whether or not it is checked out, dirty or not; nobody's uncommitted work changes."""

from pathlib import Path

from relay.errors import RelayError
from relay.host import git, repository, signals
from relay.host.repository import Repository


def land(repo: Repository, ref: str, commit: str, old: str) -> str:
    """Move `ref` from `old` to `commit`, a descendant of it; return what prevented it, or an empty string.

    Where the branch is checked out, that checkout goes along by `merge --ff-only`, which refuses rather than touch a
    changed file; nothing is stashed, and no ignored file is overwritten. Elsewhere the ref moves by compare-and-swap.
    """
    folder = checked_out_at(repo, ref)
    if folder is None:
        try:
            git.update_ref(repo, ref, commit, old)
        except RelayError as error:
            return error.message
        return ""
    if not folder.is_dir():
        return f"`{folder}` had `{ref.removeprefix('refs/heads/')}` checked out and is gone: git worktree prune"
    there = repository.discover(folder)
    if there.top is None:
        return f"`{ref.removeprefix('refs/heads/')}` is checked out away from `{folder}`: approve it from that checkout"
    with signals.held():  # killed half-way, git would leave the person's checkout half-way
        answer = git.call(
            there,
            "-C",
            str(folder),
            "merge",
            "--ff-only",
            "--no-autostash",
            "--no-overwrite-ignore",
            "--no-verify-signatures",
            "--no-stat",
            "--quiet",
            commit,
            timeout=600,
        )
    if git.resolve(repo, ref) == commit:
        return ""
    said = answer.err.strip().splitlines() or ["git refused"]
    return f"`{folder}` has `{ref.removeprefix('refs/heads/')}` checked out and cannot go along: {' '.join(said)[:500]}"


def checked_out_at(repo: Repository, ref: str) -> Path | None:
    """Return the folder of the worktree that has a branch checked out."""
    listed = git.run(repo, "worktree", "list", "--porcelain", "-z").decode("utf-8", "surrogateescape")
    for number, entry in enumerate(listed.split("\0\0")):
        lines = entry.split("\0")
        if f"branch {ref}" in lines:
            folder = Path(lines[0].removeprefix("worktree "))
            # git guesses the main one from where its git directory is, which is wrong where a `.git` file leads there
            return folder if number else repo.main_top or folder
    return None
