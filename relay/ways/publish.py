"""A run's notes and receipts as a ref, so that another clone can tell the run: no transcript, no prompt, no log."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files, git, scratch, term
from relay.host.repository import Repository
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Plan
from relay.ways import remote

PREFIX: Final = "refs/relay-ledger/"
KEPT: Final = ("receipt.json", "note.md", "reply.json", "why.md", "document.md")
"""What is kept of a leg: what receipts name by hash and people read, and nothing that is long."""


def write(ledger: Ledger, plan: Plan) -> None:
    """Keep a run under its ref, and push that where it is wanted; what prevents it is said, and stops nothing."""
    if plan.ship.publish == "off":
        return
    try:
        commit = _kept(ledger, plan)
        if plan.ship.publish == "push":
            name, ref = plan.ship.remote, f"{PREFIX}{plan.run}"
            was = remote.tip(ledger.repo, name, ref)
            if was != commit:
                remote.push(ledger.repo, name, commit, ref, was)
    except (RelayError, OSError) as error:
        said = error.message if isinstance(error, RelayError) else str(error)
        term.say(f"{term.style('warning:', 'yellow')} the receipts of {plan.run} are not published: {said}")


def _kept(ledger: Ledger, plan: Plan) -> str:
    """Write the run's folder, without what is long, as a commit, and let its ref name that."""
    folder, repo = ledger.folder(plan.run), ledger.repo
    names = ["plan.toml", *plan.files]
    for _, leg in ledgers.numbered(ledger, plan.run):
        names += [f"legs/{leg}/{name}" for name in KEPT if (folder / "legs" / leg / name).is_file()]
    given = "".join(f"{folder / name}\n" for name in names).encode()
    oids = git.run(repo, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=given).decode().split()
    with scratch.folder("index") as place:
        env = {"GIT_INDEX_FILE": str(Path(place, "index"))}
        listed = "".join(f"100644 {oid}\t{name}\0" for oid, name in zip(oids, names, strict=True)).encode()
        git.run(repo, "update-index", "-z", "--add", "--index-info", stdin=listed, env=env)
        tree = git.run(repo, "write-tree", env=env).decode().strip()
    ref = f"{PREFIX}{plan.run}"
    before = git.resolve(repo, ref)
    if before is not None and git.tree(repo, before) == tree:
        return before
    message = f"relay: the receipts of {plan.run}\n\nRelay-Run: {plan.run}\n"
    commit = git.commit_tree(repo, tree, [before] if before else [], message, git.identity(repo))
    git.put_ref(repo, ref, commit)
    return commit


@contextmanager
def borrowed(repo: Repository, wanted: str) -> Iterator[tuple[Ledger, str]]:
    """Give the run that a ref keeps, as a ledger of its own for a while; `wanted` is the ref, or the run's id."""
    ref = wanted if wanted.startswith("refs/") else f"{PREFIX}{wanted}"
    commit = git.resolve(repo, ref)
    if commit is None:
        hint = f"git fetch REMOTE '{PREFIX}*:{PREFIX}*'"
        raise RelayError(f"no receipts are kept under `{ref}` here", hint=hint)
    run = ref.rpartition("/")[2]
    with scratch.folder("ledger") as place:
        ledger = Ledger(repo=repo, root=Path(place))
        for name in git.paths(repo, commit):
            path = ledger.folder(run) / name
            if ".." in path.parts:
                raise RelayError(f"`{ref}` holds a path that leads out of it: `{name}`")
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write(path, git.blob(repo, commit, name) or b"")
        yield ledger, run
