"""The ledger: whole or not at all, one chain, nothing rewritten, and the order in which things are written."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from relay.errors import Exit, RelayError
from relay.host import files
from relay.host.repository import Repository
from relay.record import creation, plan_file, receipt
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.terms import Plan, Receipt
from tests.receipts import Event, act, judge, relay, start, told, work

FROZEN = {"spec.md": b"# Fix login\n", "prompts/implement.md": b"Do it.\n", "phases/implement.toml": b"kind = 'work'\n"}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Return the ledger of a repository that has none yet."""
    common = tmp_path / "project" / ".git"
    common.mkdir(parents=True)
    return ledgers.at(Repository(common=common, git_dir=common, top=common.parent, main_top=common.parent))


@pytest.fixture
def plan(ledger: Ledger) -> Plan:
    """Return the plan of a run that was just made."""
    return creation.create(ledger, wanted(), FROZEN)


def wanted() -> Plan:
    """Make a plan that names its frozen files by hash."""
    return relay(files={name: files.sha256(data) for name, data in FROZEN.items()})


def sealed(ledger: Ledger, plan: Plan, *events: Event) -> list[Receipt]:
    """Seal receipts one after the other."""
    return [ledgers.seal(ledger, one, {"note.md": b"a note"}) for one in told(*events, plan=plan)]


def refusal(call: Callable[[], object]) -> str:
    """Return the message of a refusal with exit 6."""
    with pytest.raises(RelayError) as refused:
        call()
    assert refused.value.exit_code == Exit.GATE
    return refused.value.message


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record each write and each sync of a folder, which happen all the same."""
    calls: list[str] = []
    write, sync = files.write, files.sync_folder

    def writing(path: Path, data: bytes, mode: int = 0o600) -> None:
        calls.append(f"write {path.name}")
        write(path, data, mode)

    def syncing(path: Path) -> None:
        calls.append(f"sync {path.name}")
        sync(path)

    monkeypatch.setattr(files, "write", writing)
    monkeypatch.setattr(files, "sync_folder", syncing)
    return calls


# --- making a run -----------------------------------------------------------------------------------------------------


def test_opening_a_ledger_touches_nothing(ledger: Ledger) -> None:
    assert ledgers.runs(ledger) == []
    assert not ledger.root.exists()


def test_a_run_is_read_back_as_it_was_frozen(ledger: Ledger, plan: Plan) -> None:
    assert ledgers.read_plan(ledger, plan.run) == plan == wanted()
    assert ledgers.frozen(ledger, plan.run, "prompts/implement.md") == b"Do it.\n"
    assert (ledgers.runs(ledger), ledgers.receipts(ledger, plan.run)) == ([plan.run], ())


def test_a_run_that_cannot_be_written_leaves_no_trace(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = files.write

    def full(path: Path, data: bytes, mode: int = 0o600) -> None:
        if path.name == "plan.toml":
            raise RelayError("no space left")
        whole(path, data, mode)

    monkeypatch.setattr(files, "write", full)
    with pytest.raises(RelayError, match="no space left"):
        creation.create(ledger, wanted(), FROZEN)
    assert list((ledger.root / "runs").iterdir()) == []


def test_a_draft_of_a_killed_relay_is_no_run_and_is_swept(ledger: Ledger) -> None:
    (ledger.root / "runs" / ".new-abc" / "legs").mkdir(parents=True)
    assert ledgers.runs(ledger) == []
    plan = creation.create(ledger, wanted(), FROZEN)
    assert [path.name for path in (ledger.root / "runs").iterdir()] == [plan.run]


def test_a_taken_id_gets_the_next_number_and_the_plan_says_so(ledger: Ledger, plan: Plan) -> None:
    second, third = (creation.create(ledger, wanted(), FROZEN) for _ in range(2))
    assert (second.run, third.run) == (f"{plan.run}-2", f"{plan.run}-3")
    assert [ledgers.read_plan(ledger, run).run for run in ledgers.runs(ledger)] == [plan.run, second.run, third.run]


def test_a_ledger_of_another_format_is_refused(ledger: Ledger, plan: Plan) -> None:
    (ledger.root / "format").write_text("2\n")
    with pytest.raises(RelayError, match="has format `2`, and this version reads 1"):
        creation.create(ledger, plan, FROZEN)


def test_a_run_is_found_by_a_part_of_its_id_that_fits_one(ledger: Ledger, plan: Plan) -> None:
    assert ledgers.find(ledger, "fix-login") == plan.run
    creation.create(ledger, wanted(), FROZEN)
    assert ledgers.find(ledger, plan.run) == plan.run
    for part, words in (("fix", "fits 2 runs"), ("other", "no run `other` here"), ("", "no run `` here")):
        with pytest.raises(RelayError, match=words):
            ledgers.find(ledger, part)


# --- the frozen plan --------------------------------------------------------------------------------------------------


def test_a_frozen_file_that_was_edited_or_removed_is_refused_by_name(ledger: Ledger, plan: Plan) -> None:
    path = ledger.folder(plan.run) / "prompts" / "implement.md"
    path.write_bytes(b"Do something else.\n")
    for look in (ledgers.read_plan, ledgers.receipts):
        assert f"`{path}`" in refusal(lambda look=look: look(ledger, plan.run))  # type: ignore[misc]
    path.unlink()
    assert f"`{path}`" in refusal(lambda: ledgers.read_plan(ledger, plan.run))


def test_a_plan_that_is_gone_torn_or_of_another_schema_is_refused_by_name(ledger: Ledger, plan: Plan) -> None:
    path = ledger.folder(plan.run) / "plan.toml"
    data = path.read_bytes()
    for torn, words in (
        (data[: len(data) // 2], "cannot be read"),
        (data.replace(b"schema = 1", b"schema = 7"), "schema `7`"),
        (data + b"extra = 1\n", "cannot be read"),
    ):
        path.write_bytes(torn)
        message = refusal(lambda: ledgers.read_plan(ledger, plan.run))
        assert f"`{path}`" in message
        assert words in message
    path.unlink()
    assert f"`{path}` is missing" in refusal(lambda: ledgers.read_plan(ledger, plan.run))


# --- the chain --------------------------------------------------------------------------------------------------------


def test_receipts_are_a_chain_that_begins_at_the_plan(ledger: Ledger, plan: Plan) -> None:
    chain = sealed(ledger, plan, work(), judge("revise"), act("answer"))
    assert ledgers.receipts(ledger, plan.run) == tuple(chain)
    assert chain[0].prev == files.sha256(plan_file.encode(plan))
    paths = [ledger.leg(plan.run, one.leg) / "receipt.json" for one in chain]
    assert [one.prev for one in chain[1:]] == [files.sha256(path.read_bytes()) for path in paths[:-1]]


def test_the_hundredth_leg_comes_after_the_ninth_and_the_tenth(ledger: Ledger, plan: Plan) -> None:
    for leg in ("100-review", "09-implement", "10-review"):
        ledger.leg(plan.run, leg).mkdir()
    assert [number for number, _ in ledgers.numbered(ledger, plan.run)] == [9, 10, 100]


def test_what_another_version_wrote_with_fewer_fields_stays_a_link_of_the_chain(ledger: Ledger, plan: Plan) -> None:
    [first] = sealed(ledger, plan, work())
    path = ledger.leg(plan.run, first.leg) / "receipt.json"
    fields = json.loads(path.read_bytes())
    del fields["document_sha256"]
    path.write_text(json.dumps(fields))
    ledgers.seal(ledger, told(work(), judge("approve"), plan=plan)[1], {})
    assert len(ledgers.receipts(ledger, plan.run)) == 2


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"verdict": "approve"}, "03-implement"),
        ({"prev": "0" * 64}, "02-review"),
        ({"run": "261128-0900-other"}, "02-review"),
        ({"leg": "05-review"}, "02-review"),
    ],
)
def test_an_edited_receipt_breaks_the_chain_and_the_break_is_named(
    ledger: Ledger, plan: Plan, change: dict[str, str], names: str
) -> None:
    chain = sealed(ledger, plan, work(), judge("revise"), work())
    path = ledger.leg(plan.run, chain[1].leg) / "receipt.json"
    path.write_bytes(receipt.encode(msgspec.structs.replace(chain[1], **change)))
    message = refusal(lambda: ledgers.receipts(ledger, plan.run))
    assert f"`{ledger.leg(plan.run, names) / 'receipt.json'}`" in message


def test_a_receipt_that_got_a_space_or_is_gone_breaks_the_chain(ledger: Ledger, plan: Plan) -> None:
    chain = sealed(ledger, plan, work(), judge("revise"))
    path = ledger.leg(plan.run, chain[0].leg) / "receipt.json"
    path.write_bytes(path.read_bytes() + b" ")
    assert "02-review" in refusal(lambda: ledgers.receipts(ledger, plan.run))
    path.unlink()
    assert "02-review" in refusal(lambda: ledgers.receipts(ledger, plan.run))


@pytest.mark.parametrize("data", [b"", b'{"schema": 1, "ru', b'{"schema": 2}', b"\x00" * 100])
def test_a_torn_receipt_or_one_of_an_unknown_schema_is_refused_by_name(ledger: Ledger, plan: Plan, data: bytes) -> None:
    [first] = sealed(ledger, plan, work())
    path = ledger.leg(plan.run, first.leg) / "receipt.json"
    path.write_bytes(data)
    assert f"`{path}`" in refusal(lambda: ledgers.receipts(ledger, plan.run))
    later = told(work(), judge("approve"), plan=plan)[1]
    assert f"`{path}`" in refusal(lambda: ledgers.seal(ledger, later, {}))
    assert not (ledger.leg(plan.run, later.leg) / "receipt.json").exists()


# --- sealing ----------------------------------------------------------------------------------------------------------


def test_a_receipt_is_never_rewritten(ledger: Ledger, plan: Plan) -> None:
    [first] = sealed(ledger, plan, work())
    folder = ledger.leg(plan.run, first.leg)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    message = refusal(lambda: ledgers.seal(ledger, first, {"note.md": b"another note"}))
    assert "never rewritten" in message
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_receipt_is_written_last_with_the_folder_synced_before_and_after(
    ledger: Ledger, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = recorded(monkeypatch)
    ledgers.seal(ledger, told(work(), plan=plan)[0], {"reply.json": b"{}", "note.md": b"a note"})
    named = ["reply.json", "note.md"]
    after = ["sync 01-implement", "sync legs", "write receipt.json", "sync 01-implement"]
    assert calls == [f"write {name}" for name in named] + after


def test_an_intent_is_durable_before_anything_happens(
    ledger: Ledger, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = recorded(monkeypatch)
    ledgers.begin(ledger, start(plan, "01-implement"))
    ledgers.begin(ledger, start(plan, "01-implement"))
    assert calls == ["write start.json", "sync 01-implement", "sync legs", "write start.json", "sync 01-implement"]


@pytest.mark.parametrize("deadly", ["note.md", "receipt.json"])
def test_a_death_before_the_receipt_leaves_a_leg_that_did_not_happen(
    ledger: Ledger, plan: Plan, deadly: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = files.write

    def dying(path: Path, data: bytes, mode: int = 0o600) -> None:
        if path.name == deadly:
            raise KeyboardInterrupt
        write(path, data, mode)

    ledgers.begin(ledger, start(plan, "01-implement"))
    with monkeypatch.context() as patch:
        patch.setattr(files, "write", dying)
        with pytest.raises(KeyboardInterrupt):
            sealed(ledger, plan, work())
    assert ledgers.receipts(ledger, plan.run) == ()
    assert [one.leg for one in ledgers.unsealed(ledger, plan.run)] == ["01-implement"]
    sealed(ledger, plan, work())
    assert ledgers.unsealed(ledger, plan.run) == []


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_legs_and_acts_share_one_sequence_of_numbers(ledger: Ledger, plan: Plan) -> None:
    assert ledgers.next_leg_id(ledger, plan.run, "implement") == "01-implement"
    sealed(ledger, plan, work(), act("stop"))
    ledgers.begin(ledger, start(plan, "03-review"))
    assert ledgers.next_leg_id(ledger, plan.run, "answer") == "04-answer"


def test_a_folder_that_holds_neither_start_nor_receipt_took_no_number(ledger: Ledger, plan: Plan) -> None:
    ledger.leg(plan.run, "01-implement").mkdir()
    (ledger.legs(plan.run) / "notes").mkdir()
    (ledger.legs(plan.run) / "07-implement.lock").touch()
    assert ledgers.next_leg_id(ledger, plan.run, "implement") == "01-implement"


def test_worktrees_of_two_repositories_of_one_name_lie_apart(tmp_path: Path) -> None:
    places = set()
    for parent in ("one", "two"):
        common = tmp_path / parent / "my project" / ".git"
        here = ledgers.at(Repository(common=common, git_dir=common, top=common.parent, main_top=common.parent))
        places.add(here.worktree("RUN", "01-implement"))
    assert len(places) == 2
    assert all("my-project-" in str(place) and place.parts[-2:] == ("RUN", "01-implement") for place in places)
