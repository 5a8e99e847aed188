"""Commits signed as the person's settings ask, and never a window or a terminal that waits for a passphrase.

`commit-tree` signs only when it is told to (pitfalls row 23), so the setting is read. GnuPG is run in its batch mode,
where a key that is not unlocked is an error at once; other programs have no terminal, and end at a time limit. The same
is tried before a run begins: a key that cannot sign is known before anything is spent.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import git, scratch
from relay.host.gitenv import Config
from relay.host.repository import Repository
from relay.terms import Plan
from relay.ways.base import RefusedError

SECONDS: Final = 45.0
"""How long a signature may take; a key on a card that wants a touch has this long."""

UNSIGNED: Final = "git config commit.gpgSign false"
"""What a person types who wants no signatures here."""

_BATCH: Final = '#!/bin/sh\nexec {program} --batch --no-tty --pinentry-mode=error "$@"\n'


def wanted(repo: Repository) -> bool:
    """Tell whether the person's settings ask for signed commits."""
    return git.call(repo, "config", "--type=bool", "--get", "commit.gpgSign").out.strip() == b"true"


def preflight(repo: Repository, plan: Plan) -> None:
    """Refuse a run whose result is to be signed by a key that cannot: `RefusedError`, and no ref is written."""
    if wanted(repo) and plan.ship.method != "fast-forward":  # which sends the worker's own commit
        attempt(repo, plan.base)


def attempt(repo: Repository, base: str) -> None:
    """Sign a commit that nobody will see, with the files of another; `RefusedError` where that fails."""
    commit(repo, git.tree(repo, base), [], "relay: can it be signed?\n")


def commit(repo: Repository, tree: str, parents: Sequence[str], message: str) -> str:
    """Write a commit by whom the person's settings name, signed where they say so; `RefusedError` where that fails."""
    identity = git.identity(repo)
    if not wanted(repo):
        return git.commit_tree(repo, tree, parents, message, identity)
    kind = _setting(repo, "gpg.format") or "openpgp"
    program = _setting(repo, f"gpg.{kind}.program") or (_setting(repo, "gpg.program") if kind == "openpgp" else "")
    with scratch.folder("sign") as folder:
        config: Config = ()
        if kind == "openpgp" and Path(program or "gpg").name in {"gpg", "gpg2"}:
            path = Path(folder, "gpg")
            path.write_text(_BATCH.format(program=_quoted(program or "gpg")), encoding="utf-8")
            path.chmod(0o700)
            config = (("gpg.program", str(path)), ("gpg.openpgp.program", str(path)))
        try:
            return _written(repo, git.commit_tree(repo, tree, parents, message, identity), config)
        except RelayError as error:
            raise RefusedError(
                f"the commit cannot be signed, as `commit.gpgSign` asks: {error.message}",
                hint=f"unlock the key by signing something yourself: {_example(kind)}; or: {UNSIGNED}",
            ) from None


def _written(repo: Repository, plain: str, config: Config) -> str:
    """Write a commit again, with a signature: git signs what it writes, and nothing that is there already."""
    head, _, text = git.run(repo, "cat-file", "commit", plain).partition(b"\n\n")
    fields = [line.partition(" ")[::2] for line in os.fsdecode(head).splitlines()]
    env: dict[str, str] = {}
    args = ["commit-tree", "-S", "-F", "-"]
    for name, value in fields:
        if name == "parent":
            args += ["-p", value]
        elif name in {"author", "committer"}:
            who, _, when = value.rpartition("> ")
            person, _, email = who.rpartition(" <")
            role = f"GIT_{name.upper()}"
            env |= {f"{role}_NAME": person, f"{role}_EMAIL": email, f"{role}_DATE": when}
    out = git.run(repo, *args, dict(fields)["tree"], stdin=text, env=env, config=config, timeout=SECONDS)
    return os.fsdecode(out).strip()


def signed(repo: Repository, commit_: str) -> bool:
    """Tell whether a commit carries a signature."""
    head = git.call(repo, "cat-file", "commit", commit_).out.partition(b"\n\n")[0]
    return any(line.startswith(b"gpgsig") for line in head.split(b"\n"))


def _setting(repo: Repository, name: str) -> str:
    return os.fsdecode(git.call(repo, "config", "--get", name).out).strip()


def _example(kind: str) -> str:
    return "ssh-add" if kind == "ssh" else "echo | gpg --sign > /dev/null"


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
