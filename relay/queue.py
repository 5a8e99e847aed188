"""The queue: specs that wait for a night, a plain file each in the ledger, and those that relay.toml lists.

An entry is taken once, whatever is killed: the run made from it names it in its plan, and only then its file goes.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal

import msgspec

from relay.errors import RelayError
from relay.host import clock, files, git, lock
from relay.host.repository import Repository
from relay.record import freeze, strict
from relay.record import ledger as ledgers
from relay.record import spec as specs
from relay.record.config import Config
from relay.record.ledger import Ledger
from relay.rules import night
from relay.rules import plan as rules
from relay.rules.night import Candidate, Past
from relay.terms import SCHEMA, Entry, Spec, Struct

LOCK: Final = "lock"


class Added(Struct, frozen=True, kw_only=True):
    """What became of one spec that was to be added: it stood there already, or with another text."""

    entry: Entry
    how: Literal["added", "known", "renewed"]


class _Promise(msgspec.Struct):
    """What of a plan the queue asks for; the rest is passed over, so that many runs are read in little time."""

    spec_sha256: str
    source: str | None = None
    queued: str | None = None


def entries(ledger: Ledger) -> tuple[Entry, ...]:
    """Return the entries that no run was made from yet, in their order; a file that cannot be read is passed over."""
    taken = {past.queued for past in _promises(ledger)}
    found = (_read(path) for path in _paths(ledger))
    return night.ordered(entry for entry in found if isinstance(entry, Entry) and entry.id not in taken)


def unreadable(ledger: Ledger) -> list[str]:
    """Say of each file in the queue that is no entry what is wrong with it."""
    return [found for found in map(_read, _paths(ledger)) if isinstance(found, str)]


def _paths(ledger: Ledger) -> list[Path]:
    return sorted(path for path in ledger.queue.glob("[!.]*.json") if path.name != f"{LOCK}.json")


def _read(path: Path) -> Entry | str:
    try:
        found = strict.convert(strict.load_json(files.read(path)), Entry)
    except FileNotFoundError:
        return f"`{path}` is gone"
    except (strict.Wrong, RelayError) as wrong:
        return f"`{path}`: {wrong}"
    return found if found.schema == SCHEMA else f"`{path}` has schema `{found.schema}`, not {SCHEMA}"


def _promises(ledger: Ledger) -> Iterator[Past]:
    """Yield what each run was made from, oldest first; of a plan that cannot be read nothing is known."""
    for run in ledgers.runs(ledger):
        try:
            found = msgspec.toml.decode(files.read(ledger.folder(run) / "plan.toml"), type=_Promise)
        except (OSError, RelayError, msgspec.MsgspecError, ValueError):
            yield Past(run=run, sha256="")
        else:
            yield Past(run=run, sha256=found.spec_sha256, source=found.source, queued=found.queued)


def pasts(ledger: Ledger) -> tuple[Past, ...]:
    """Return all runs, oldest first, with what they were made from and how they stand."""
    return tuple(msgspec.structs.replace(past, outcome=outcome(ledger, past.run)) for past in _promises(ledger))


def outcome(ledger: Ledger, run: str) -> str:
    """Derive how a run stands; one that cannot be read says so."""
    try:
        return rules.outcome(rules.next_leg(ledgers.read_plan(ledger, run), ledgers.receipts(ledger, run)))
    except (RelayError, OSError):
        return "unreadable"


def line(ledger: Ledger, settings: Config, commit: str) -> tuple[Candidate, ...]:
    """Return everything that waits for a night, in its order, and why each would not be taken now.

    `settings` and `commit` are those of the base: its specs are read from there, whatever is checked out.
    """
    now, known, waiting = clock.now(), pasts(ledger), entries(ledger)
    queued = {entry.spec for entry in waiting}
    found = [night.candidate(entry, now, queued, known) for entry in waiting]
    for path in matching(ledger.repo, commit, settings.queue):
        if path in queued:
            continue
        try:
            task = at_base(ledger.repo, commit, path)
        except RelayError as error:
            found.append(Candidate(spec=path, sha256="", blocked=error.message))
            continue
        if (one := night.listed(path, task.sha256, known)) is not None:
            found.append(one)
    return tuple(found)


def matching(repo: Repository, commit: str, queue: str | Sequence[str]) -> list[str]:
    """Return the paths of the base commit that `queue` of relay.toml means, by name; `**` stands for any folders."""
    patterns = [pattern.split("/") for pattern in ((queue,) if isinstance(queue, str) else queue)]
    paths = git.paths(repo, commit) if patterns and commit else ()
    return sorted(path for path in paths if any(_fits(path.split("/"), one) for one in patterns))


def _fits(path: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_fits(path[skipped:], pattern[1:]) for skipped in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _fits(path[1:], pattern[1:])


def at_base(repo: Repository, commit: str, path: str) -> Spec:
    """Read a spec as it stands in the base commit; `RelayError` as `relay run` would have it."""
    data = git.blob(repo, commit, path)
    if data is None:
        raise RelayError(f"there is no spec `{path}` in {commit[:12]}", hint="git status")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise strict.refusal(path, f"the spec is not UTF-8, see byte {error.start}") from None
    return _whole(specs.parse(text, path), path)


def read(ledger: Ledger, one: Candidate, commit: str) -> Spec:
    """Read the spec of a candidate when its turn comes: an entry's from its file, a listed one from the base."""
    if one.entry is None:
        return at_base(ledger.repo, commit, one.spec)
    path = where(ledger, one.spec)
    return _whole(specs.read(path), str(path))


def where(ledger: Ledger, spec: str) -> Path:
    """Return the file that an entry names."""
    return (ledger.repo.main_top or ledger.repo.common) / spec


def _whole(task: Spec, path: str) -> Spec:
    """Refuse a spec that nothing could show to be done, before the night does."""
    if not task.criteria:
        raise RelayError(
            f"the spec `{path}` names no criterion, so nothing could show that it is done",
            hint="add a list under `## Acceptance`",
        )
    return task


def add(
    ledger: Ledger, paths: Sequence[Path], *, priority: int = 0, after: str | None = None, not_before: str | None = None
) -> list[Added]:
    """Put specs at the end of the queue, all of them or, where one is refused, none.

    A spec that stands there already is not doubled: its turn reads it anew anyway.
    """
    read_now = {_name(ledger, path): _whole(specs.read(path), str(path)) for path in paths}
    with _changing(ledger):
        there = {entry.spec: entry for entry in entries(ledger)}
        if after is not None:
            after = _earlier(ledger, after, there)
        if after in read_now:
            raise RelayError(f"`{after}` cannot come after itself", hint="relay queue list")
        place = max((entry.place for entry in there.values()), default=0)
        done = []
        for spec, task in read_now.items():
            known = there.get(spec)
            if known is not None and known.sha256 == task.sha256:
                done.append(Added(entry=known, how="known"))
                continue
            place += known is None
            entry = Entry(
                id=known.id if known else _new_id(ledger, spec),
                spec=spec,
                sha256=task.sha256,
                added=clock.stamp(),
                place=known.place if known else place,
                priority=priority,
                after=after,
                not_before=not_before,
            )
            _write(ledger, entry)
            done.append(Added(entry=entry, how="renewed" if known else "added"))
        return done


def remove(ledger: Ledger, wanted: Sequence[str]) -> list[Entry]:
    """Take entries out, all that are named or none."""
    with _changing(ledger):
        found = [named(ledger, one) for one in wanted]
        for entry in found:
            _drop(ledger, entry.id)
        return found


def move(ledger: Ledger, wanted: str, *, before: str | None = None, last: bool = False) -> Entry:
    """Move an entry to the front, before another one, or to the end; it takes the priority that counts there.

    Whenever this is killed, the others stand in the order in which they stood.
    """
    with _changing(ledger):
        one = named(ledger, wanted)
        others = [entry for entry in entries(ledger) if entry.id != one.id]
        if not others:
            return one
        if last:
            priority, place = others[-1].priority, others[-1].place + 1
        elif before is None:
            priority, place = others[0].priority, others[0].place - 1
        else:
            other = named(ledger, before)
            if other.id == one.id:
                raise RelayError(f"`{one.id}` cannot stand before itself", hint="relay queue list")
            priority, place = other.priority, other.place
            for entry in reversed(others[[entry.id for entry in others].index(other.id) :]):
                _write(ledger, msgspec.structs.replace(entry, place=entry.place + 1))
        return _write(ledger, msgspec.structs.replace(one, priority=priority, place=place))


def settle(ledger: Ledger) -> None:
    """Take away the files of entries that a run was made from."""
    taken = {past.queued for past in _promises(ledger)}
    if any(path.stem in taken for path in _paths(ledger)):
        with _changing(ledger):
            for path in _paths(ledger):
                if path.stem in taken:
                    _drop(ledger, path.stem)


def named(ledger: Ledger, wanted: str) -> Entry:
    """Return the entry that a person means: by its id, by its spec, or by a part of either that fits only one."""
    known = entries(ledger)
    exact = [entry for entry in known if wanted in {entry.id, entry.spec}]
    fitting = exact or [entry for entry in known if wanted and (wanted in entry.id or wanted in entry.spec)]
    if len(fitting) == 1:
        return fitting[0]
    what = f"`{wanted}` fits {len(fitting)} entries: {', '.join(entry.id for entry in fitting[:5])}"
    raise RelayError(what if fitting else f"no entry `{wanted}` in the queue", hint="relay queue list")


@contextmanager
def _changing(ledger: Ledger) -> Iterator[None]:
    ledgers.prepare(ledger)
    ledger.queue.mkdir(0o700, exist_ok=True)
    with lock.hold(ledger.queue / LOCK, "relay queue", wait=10):
        yield


def _name(ledger: Ledger, path: Path) -> str:
    """Name a spec so that a night finds it from wherever it starts: from the main checkout's top, or absolutely."""
    real, top = path.resolve(), ledger.repo.main_top
    return str(real.relative_to(top)) if top is not None and real.is_relative_to(top) else str(real)


def _earlier(ledger: Ledger, wanted: str, there: Mapping[str, Entry]) -> str:
    """Return the run or the spec that `--after` names: a run, a file, an entry, or a part of a run's id."""
    if wanted in ledgers.runs(ledger):
        return wanted
    if Path(wanted).is_file():
        return _name(ledger, Path(wanted))
    fitting = [entry.spec for entry in there.values() if wanted in {entry.id, entry.spec}]
    return fitting[0] if fitting else ledgers.find(ledger, wanted)


def _new_id(ledger: Ledger, spec: str) -> str:
    """Make a name for an entry that no entry has or had, as far as any plan knows."""
    had = {path.stem for path in _paths(ledger)}.union(past.queued or "" for past in _promises(ledger))
    while True:
        name = f"{freeze.slug(spec)}-{secrets.token_hex(2)}"
        if name not in had:
            return name


def _write(ledger: Ledger, entry: Entry) -> Entry:
    data = msgspec.json.format(msgspec.json.encode(entry, order="sorted"), indent=1) + b"\n"
    files.write(ledger.queue / f"{entry.id}.json", data)
    files.sync_folder(ledger.queue)
    return entry


def _drop(ledger: Ledger, name: str) -> None:
    (ledger.queue / f"{name}.json").unlink(missing_ok=True)
    files.sync_folder(ledger.queue)
