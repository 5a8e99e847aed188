"""The queue: specs that wait for a night, a plain file each in the ledger, and those that relay.toml lists.

An entry is taken once, whatever is killed: the run made from it names it in its plan, and only then its file goes.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from relay.errors import RelayError
from relay.host import clock, files, lock
from relay.queue import adding, listed, promised
from relay.queue.adding import Added, Wish
from relay.record import freeze, strict
from relay.record import ledger as ledgers
from relay.record import spec as specs
from relay.record.config import Config
from relay.record.ledger import Ledger
from relay.rules import night
from relay.rules.night import Candidate, Past
from relay.terms import SCHEMA, Entry, Spec

LOCK: Final = "lock"


def entries(ledger: Ledger) -> tuple[Entry, ...]:
    """Return the entries that no run was made from yet, in their order; a file that cannot be read is passed over."""
    return _waiting(ledger, promised.every(ledger))


def _waiting(ledger: Ledger, pasts: Iterable[Past]) -> tuple[Entry, ...]:
    taken = {past.queued for past in pasts}
    found = (_read(path) for path in _paths(ledger))
    return night.ordered(entry for entry in found if isinstance(entry, Entry) and entry.id not in taken)


def unreadable(ledger: Ledger) -> dict[Path, str]:
    """Say of each file in the queue that is no entry what is wrong with it."""
    read_now = ((path, _read(path)) for path in _paths(ledger))
    return {path: found for path, found in read_now if isinstance(found, str)}


def _paths(ledger: Ledger) -> list[Path]:
    return sorted(path for path in ledger.queue.glob("[!.]*.json") if path.name != f"{LOCK}.json")


def _read(path: Path) -> Entry | str:
    try:
        found = strict.convert(strict.load_json(files.read(path)), Entry)
    except FileNotFoundError:
        return f"`{path}` is gone"
    except (strict.Wrong, RelayError, OSError) as wrong:
        return f"`{path}`: {wrong}"
    if found.schema != SCHEMA:
        return f"`{path}` has schema `{found.schema}`, not {SCHEMA}"
    if found.id != path.stem:  # a copy: a run that is made from one of the two would leave the other behind
        return f"`{path}` says that it is `{found.id}`"
    try:
        stamped = found.not_before is None or datetime.fromisoformat(found.not_before).tzinfo is not None
    except ValueError:
        stamped = False
    return found if stamped else f"`{path}`: `not_before` is `{found.not_before}`, which is no stamp in UTC"


def line(ledger: Ledger, settings: Config, commit: str) -> tuple[Candidate, ...]:
    """Return everything that waits for a night, in its order, and why each would not be taken now.

    `settings` and `commit` are those of the base: its specs are read from there, whatever is checked out.
    """
    now, known = clock.now(), promised.every(ledger)
    waiting, had = _waiting(ledger, known), {past.sha256 for past in known}
    ahead = {entry.spec for entry in waiting}
    others = [one for one in listed.every(ledger.repo, commit, settings.queue) if one.path not in ahead]
    due = {one.path for one in others if one.sha256 not in had}
    asked = due.union(entry.after for entry in waiting if entry.after is not None)
    known = tuple(promised.standing(ledger, past) if {past.run, past.source} & asked else past for past in known)
    circle = adding.circle(waiting)
    found: list[Candidate] = []
    for entry in waiting:
        one = night.candidate(entry, now, ahead | due, known)
        if entry.spec in circle:
            why = f"after `{entry.after}`, which comes after `{entry.spec}` itself"
            one = msgspec.structs.replace(one, blocked=why, waits=False)
        elif not one.blocked and (run := promised.by_hand(ledger, entry, where(ledger, entry.spec), known)):
            why = f"`{run}` was made from this very text already; `relay queue add --again` would have it run again"
            one = msgspec.structs.replace(one, blocked=why)
        found.append(one)
    for file in others:
        if file.problem:
            found.append(Candidate(spec=file.path, sha256=file.sha256, blocked=file.problem))
        elif (other := night.listed(file.path, file.sha256, known)) is not None:
            found.append(other)
    return tuple(found)


def read(ledger: Ledger, one: Candidate, commit: str) -> Spec:
    """Read the spec of a candidate when its turn comes: an entry's from its file, a listed one from the base."""
    if one.entry is None:
        return listed.at_base(ledger.repo, commit, one.spec)
    path = where(ledger, one.spec)
    try:
        return listed.whole(specs.read(path), str(path))
    except OSError as error:
        hint = f"relay queue remove {one.entry.id}"
        raise RelayError(f"the spec `{listed.shown(one.spec)}` cannot be read: {error.strerror}", hint=hint) from None


def where(ledger: Ledger, spec: str) -> Path:
    """Return the file that an entry names."""
    return (ledger.repo.main_top or ledger.repo.common) / spec


def add(ledger: Ledger, paths: Sequence[Path], wish: Wish) -> list[Added]:
    """Put specs at the end of the queue, all of them or, where one is refused, none.

    A spec that stands there already is not doubled: its turn reads it anew anyway. One whose very text had its run is
    not paid for twice by mistake.
    """
    read_now = {_name(ledger, path): _written(path) for path in paths}
    with _changing(ledger):
        there = {entry.spec: entry for entry in entries(ledger)}
        if wish.after:
            wish = msgspec.structs.replace(wish, after=_earlier(ledger, wish.after, there))
        if wish.after in read_now:
            raise RelayError(f"`{wish.after}` cannot come after itself", hint="relay queue list")
        pasts = promised.every(ledger)
        place = max((entry.place for entry in there.values()), default=0)
        had = {path.stem for path in _paths(ledger)}.union(past.queued or "" for past in pasts)
        done = []
        for spec, task in read_now.items():
            known, place = there.get(spec), place + 1
            fresh = Entry(id=_new_id(had, spec), spec=spec, sha256=task.sha256, added=clock.stamp(), place=place)
            done.append(adding.decided(known, fresh, wish, adding.made(ledger, fresh, known, pasts)))
        wanted = [one.entry for one in done if one.entry is not None and one.how not in {"known", "made"}]
        now = {**there, **{entry.spec: entry for entry in wanted}}
        if wish.after and (circle := adding.circle(now.values()) & {*read_now}):
            what = f"`{min(circle)}` would come after itself: `{wish.after}` waits for it"
            raise RelayError(what, hint="relay queue list")
        for entry in wanted:
            _write(ledger, entry)
        return done


def _written(path: Path) -> Spec:
    """Read a spec that is to be queued."""
    try:
        return listed.whole(specs.read(path), str(path))
    except RelayError as error:
        hint = error.hint.replace("relay run ", "relay queue add ")
        raise RelayError(error.message, hint=hint, exit_code=error.exit_code) from None


def remove(ledger: Ledger, wanted: Sequence[str]) -> list[Entry]:
    """Take entries out, all that are named or none."""
    with _changing(ledger):
        known = entries(ledger)
        found = [named(known, one) for one in wanted]
        for entry in found:
            _drop(ledger, entry.id)
        return found


def move(ledger: Ledger, wanted: str, *, before: str | None = None, last: bool = False) -> Entry:
    """Move an entry to the front, before another one, or to the end; it takes the priority that counts there.

    Whenever this is killed, the others stand in the order in which they stood.
    """
    with _changing(ledger):
        known = entries(ledger)
        one = named(known, wanted)
        others = [entry for entry in known if entry.id != one.id]
        if not others:
            return one
        if last:
            priority, place = others[-1].priority, others[-1].place + 1
        elif before is None:
            priority, place = others[0].priority, others[0].place - 1
        else:
            other = named(known, before)
            if other.id == one.id:
                raise RelayError(f"`{one.id}` cannot stand before itself", hint="relay queue list")
            priority, place = other.priority, other.place
            for entry in reversed(others[[entry.id for entry in others].index(other.id) :]):
                _write(ledger, msgspec.structs.replace(entry, place=entry.place + 1))
        return _write(ledger, msgspec.structs.replace(one, priority=priority, place=place))


def settle(ledger: Ledger) -> None:
    """Take away the files of entries that a run was made from."""
    taken = {past.queued for past in promised.every(ledger)}
    if any(path.stem in taken for path in _paths(ledger)):
        with _changing(ledger):
            for path in _paths(ledger):
                if path.stem in taken:
                    _drop(ledger, path.stem)


def named(known: Sequence[Entry], wanted: str) -> Entry:
    """Return the entry that a person means: by its id, by its spec, or by a part of either that fits only one."""
    exact = [entry for entry in known if wanted in {entry.id, entry.spec}]
    fitting = exact or [entry for entry in known if wanted and (wanted in entry.id or wanted in entry.spec)]
    if len(fitting) == 1:
        return fitting[0]
    what = f"`{wanted}` fits {len(fitting)} entries: {', '.join(entry.id for entry in fitting[:5])}"
    raise RelayError(what if fitting else f"no entry `{wanted}` in the queue", hint="relay queue list")


@contextmanager
def _changing(ledger: Ledger) -> Iterator[None]:
    ledgers.prepare(ledger)
    try:
        ledger.queue.mkdir(0o700, exist_ok=True)
    except OSError as error:
        hint = f"see what stands there: ls -ld {ledger.queue}"
        raise RelayError(f"`{ledger.queue}` cannot be made: {error.strerror}", hint=hint) from None
    with lock.hold(ledger.queue / LOCK, "relay queue", wait=10):
        yield


def _name(ledger: Ledger, path: Path) -> str:
    """Name a spec so that a night finds it from wherever it starts: from the main checkout's top, or absolutely."""
    real, top = path.resolve(), ledger.repo.main_top
    name = str(real.relative_to(top)) if top is not None and real.is_relative_to(top) else str(real)
    if listed.shown(name) != name:
        raise RelayError(f"the name of the spec `{listed.shown(name)}` is not UTF-8", hint="give the file another name")
    return name


def _earlier(ledger: Ledger, wanted: str, there: Mapping[str, Entry]) -> str:
    """Return the run or the spec that `--after` names: a run, a file, an entry, or a part of a run's id."""
    if wanted in ledgers.runs(ledger):
        return wanted
    if Path(wanted).is_file():
        return _name(ledger, Path(wanted))
    fitting = [entry.spec for entry in there.values() if wanted in {entry.id, entry.spec}]
    if not fitting and not any(wanted in run for run in ledgers.runs(ledger)):
        hint = "give a file, an entry or a run: relay queue list, relay status --all"
        raise RelayError(f"`{wanted}` is neither a spec nor a run", hint=hint)
    return fitting[0] if fitting else ledgers.find(ledger, wanted)


def _new_id(had: set[str], spec: str) -> str:
    """Make a name for an entry that no entry has or had, as far as any plan knows, and count it among those."""
    while True:
        name = f"{freeze.slug(spec)}-{secrets.token_hex(2)}"
        if name not in had:
            had.add(name)
            return name


def _write(ledger: Ledger, entry: Entry) -> Entry:
    data = msgspec.json.format(msgspec.json.encode(entry, order="sorted"), indent=1) + b"\n"
    files.write(ledger.queue / f"{entry.id}.json", data)
    files.sync_folder(ledger.queue)
    return entry


def _drop(ledger: Ledger, name: str) -> None:
    (ledger.queue / f"{name}.json").unlink(missing_ok=True)
    files.sync_folder(ledger.queue)
