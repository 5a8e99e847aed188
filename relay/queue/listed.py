"""Specs that relay.toml lists: files of the base commit, found by their names and read there, by two calls of git."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from relay.errors import RelayError
from relay.host import git
from relay.host.repository import Repository
from relay.record import spec as specs
from relay.record import strict
from relay.terms import Spec, Struct


class Listed(Struct, frozen=True, kw_only=True):
    """One file that relay.toml lists, as it stands in the base; `problem` says why no run can be made of it."""

    path: str
    sha256: str = ""
    problem: str = ""


class _Blob(NamedTuple):
    """A file of a commit."""

    path: str
    mode: str
    oid: str
    size: int


def every(repo: Repository, commit: str, queue: str | Sequence[str]) -> Iterator[Listed]:
    """Yield what `queue` of relay.toml means, by name; one that cannot be read says why, and hides no other."""
    patterns = _patterns(queue)
    files_there = [blob for blob in _blobs(repo, commit) if _means(patterns, blob.path)] if patterns and commit else []
    for blob, data in _read(repo, sorted(files_there)):
        path, odd = shown(blob.path), "its name is not UTF-8, and cannot be written down"
        try:
            yield Listed(path=path, sha256=_spec(blob, data).sha256, problem=odd * (path != blob.path))
        except RelayError as error:
            yield Listed(path=path, problem=error.message)


def shown(path: str) -> str:
    """Write a path of any bytes so that it can be shown and kept."""
    return path.encode("utf-8", "backslashreplace").decode()


def matching(repo: Repository, commit: str, queue: str | Sequence[str]) -> list[str]:
    """Return the paths of the base commit that `queue` of relay.toml means, by name; `**` stands for any folders."""
    patterns = _patterns(queue)
    return sorted(path for path in (git.paths(repo, commit) if patterns and commit else ()) if _means(patterns, path))


def at_base(repo: Repository, commit: str, path: str) -> Spec:
    """Read a spec as it stands in the base commit; `RelayError` as `relay run` would have it."""
    for blob, data in _read(repo, [blob for blob in _blobs(repo, commit, path) if blob.path == path]):
        return _spec(blob, data)
    raise RelayError(f"there is no spec `{path}` in {commit[:12]}", hint="git status")


def whole(task: Spec, path: str) -> Spec:
    """Refuse a spec that nothing could show to be done, before the night does."""
    if not task.criteria:
        raise RelayError(
            f"the spec `{path}` names no criterion, so nothing could show that it is done",
            hint="add a list under `## Acceptance`",
        )
    return task


def _patterns(queue: str | Sequence[str]) -> list[list[str]]:
    return [pattern.split("/") for pattern in ((queue,) if isinstance(queue, str) else queue)]


def _means(patterns: Iterable[Sequence[str]], path: str) -> bool:
    return any(_fits(path.split("/"), one) for one in patterns)


def _fits(path: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_fits(path[skipped:], pattern[1:]) for skipped in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _fits(path[1:], pattern[1:])


def _blobs(repo: Repository, commit: str, *paths: str) -> Iterator[_Blob]:
    """Yield the files and links of a commit; what is another repository's is passed over."""
    out = git.run(repo, "ls-tree", "-r", "-l", "-z", "--full-tree", commit, "--", *paths)
    for line in out.decode("utf-8", "surrogateescape").split("\0"):
        about, _, path = line.partition("\t")
        words = about.split()
        if words[1:2] == ["blob"]:
            yield _Blob(path, words[0], words[2], int(words[3]))


def _read(repo: Repository, blobs: Sequence[_Blob]) -> Iterator[tuple[_Blob, bytes]]:
    """Yield each file with its bytes, read by one call of git; of what is too large to be a spec, none."""
    small = [blob for blob in blobs if blob.size <= specs.LIMIT]
    asked = "".join(f"{blob.oid}\n" for blob in small).encode()
    rest = git.run(repo, "cat-file", "--batch", stdin=asked) if small else b""
    for blob in blobs:
        data = b""
        if blob.size <= specs.LIMIT:
            head, _, rest = rest.partition(b"\n")
            if head.split(b" ")[1:] != [b"blob", b"%d" % blob.size]:
                raise RelayError(f"`{shown(blob.path)}` cannot be read from the repository", hint="git fsck")
            data, rest = rest[: blob.size], rest[blob.size + 1 :]
        yield blob, data


def _spec(blob: _Blob, data: bytes) -> Spec:
    if blob.size > specs.LIMIT:
        raise RelayError(
            f"the spec `{blob.path}` has {blob.size} bytes, the limit is {specs.LIMIT}", hint="split the task"
        )
    if blob.mode == "120000":
        raise RelayError(f"the spec `{blob.path}` is a link", hint="list the file that it leads to")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise strict.refusal(blob.path, f"the spec is not UTF-8, see byte {error.start}") from None
    return whole(specs.parse(text, blob.path), blob.path)
