"""Every fault is found and named, none hides another, and nothing on disk makes Relay fall over."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from relay.record import receipt
from relay.terms import Receipt
from tests.commands.conftest import WHOLE
from tests.world import Ran, World

TEST = """\
import unittest

import calc


class Test(unittest.TestCase):
    def test_{0}(self):
        self.assertEqual(calc.add({1}, {1}), 2 * {1})
"""

Damage = Callable[[World], object]


def _leg(world: World, number: int, name: str = "receipt.json") -> Path:
    return world.legs()[number - 1] / name


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def _edit(path: Path, **fields: object) -> None:
    path.write_bytes(receipt.encode(msgspec.structs.replace(receipt.decode(path.read_bytes(), Receipt, ""), **fields)))


def _faults(ran: Ran, world: World) -> list[str]:
    """Return the faults with paths below the run, and the exit code checked."""
    lines = ran.out.splitlines()
    assert ran.code == (6 if lines else 0), ran
    return [line.replace(f"{world.runs / world.only_run()}/", "") for line in lines]


def test_a_run_that_nobody_touched_is_whole(accepted: World) -> None:
    ran = accepted.inside("verify")
    assert (ran.code, ran.out) == (0, "")
    assert "whole, 5 receipts and 5 notes" in ran.err
    assert accepted.inside("approve", "task").code == 0
    assert accepted.inside("verify", "task").code == 0


def _forgotten(world: World) -> None:
    """Remove the newest leg, and leave a ref that it had."""
    ref = _ref(world, 5)
    shutil.rmtree(world.legs()[4])
    world.git("update-ref", f"{ref}.void", "HEAD")


def _ref(world: World, number: int) -> str:
    return f"refs/relay/{world.only_run()}/{world.legs()[number - 1].name}"


DAMAGES: list[tuple[Damage, str]] = [
    (lambda w: _append(w.runs / w.only_run() / "spec.md"), "spec.md: the frozen file is not what it was"),
    (lambda w: (w.runs / w.only_run() / "prompts/review.md").unlink(), "prompts/review.md: the frozen file is missing"),
    (lambda w: _append(_leg(w, 1, "note.md")), "legs/01-implement/note.md: the note is not the one"),
    (lambda w: _leg(w, 1, "note.md").unlink(), "legs/01-implement/note.md: the note is missing"),
    (lambda w: _append(_leg(w, 2, "reply.json")), "legs/02-review/reply.json: the reply is not the one"),
    (lambda w: _leg(w, 2, "reply.json").unlink(), "legs/02-review/reply.json: the reply is missing"),
    (lambda w: _append(_leg(w, 3, "prompt.md")), "legs/03-implement/prompt.md: the prompt is not the one"),
    (lambda w: _leg(w, 2).write_bytes(_leg(w, 2).read_bytes()[:200]), "legs/02-review/receipt.json: cannot be read"),
    (lambda w: _edit(_leg(w, 2), score="9/9"), "legs/03-implement/receipt.json: the receipt does not name"),
    (lambda w: _edit(_leg(w, 1), prev="0" * 64), "legs/01-implement/receipt.json: the receipt does not name the one"),
    (lambda w: _append(_leg(w, 5)), "legs/05-acceptance/receipt.json: cannot be read"),
    (lambda w: _leg(w, 5).write_bytes(_leg(w, 5).read_bytes() + b"\n"), "legs/05-acceptance/receipt.json: the rec"),
    (lambda w: _edit(_leg(w, 5), run="other"), "legs/05-acceptance/receipt.json: the receipt is that of `other/"),
    (lambda w: _leg(w, 2).unlink(), "legs/02-review/receipt.json: the receipt is missing, and later legs"),
    (lambda w: shutil.rmtree(w.legs()[1]), "legs: leg or act number 2 is missing"),
    (lambda w: shutil.copytree(w.legs()[1], w.legs()[1].with_name("02-other")), "legs/02-other: number 2 is taken"),
    (lambda w: _leg(w, 3, "start.json").write_bytes(b""), "legs/03-implement/start.json: cannot be read"),
    (lambda w: _edit(_leg(w, 5), head="1" * 40), "legs/05-acceptance/receipt.json: the commit `11111"),
    (lambda w: _edit(_leg(w, 5), tree="1" * 40), "legs/05-acceptance/receipt.json: the tree of its head is"),
    (lambda w: w.git("update-ref", _ref(w, 3), "HEAD"), "legs/03-implement/receipt.json: `refs/relay/"),
    (lambda w: w.git("update-ref", "-d", _ref(w, 3)), "legs/03-implement/receipt.json: `refs/relay/"),
    (_forgotten, "legs/05-acceptance/receipt.json: the receipt is missing, and `refs/relay/"),
]


@pytest.mark.parametrize("number", range(len(DAMAGES)), ids=[text.split(":")[0] for _, text in DAMAGES])
def test_each_damage_is_found_and_names_its_file(accepted: World, number: int) -> None:
    damage, fault = DAMAGES[number]
    damage(accepted)
    faults = _faults(accepted.inside("verify"), accepted)
    assert [line for line in faults if line.startswith(fault)], faults


def test_all_faults_are_told_at_once(accepted: World) -> None:
    for name in ("note.md", "reply.json", "prompt.md"):
        _append(_leg(accepted, 1, name))
    _append(_leg(accepted, 2))
    _leg(accepted, 4, "note.md").unlink()
    accepted.git("update-ref", "-d", _ref(accepted, 3))
    files = {line.split(": ")[0] for line in _faults(accepted.inside("verify"), accepted)}
    assert files == {
        "legs/01-implement/note.md",
        "legs/01-implement/prompt.md",
        "legs/01-implement/reply.json",
        "legs/02-review/receipt.json",
        "legs/03-implement/receipt.json",
        "legs/04-review/note.md",
    }


def test_a_forger_who_chains_the_receipts_anew_is_betrayed_by_the_note(accepted: World) -> None:
    prev = ""
    for number, leg in enumerate(accepted.legs(), start=1):
        path = leg / "receipt.json"
        sealed = receipt.decode(path.read_bytes(), Receipt, "")
        met = tuple(msgspec.structs.replace(one, met=True, exit=0) for one in sealed.criteria)
        _edit(path, criteria=met, **({"prev": prev} if number > 1 else {}))
        prev = hashlib.sha256(path.read_bytes()).hexdigest()
    [fault] = _faults(accepted.inside("verify"), accepted)
    assert fault.startswith("legs/01-implement/note.md: the note that its receipt names is not the one that plan,")


@pytest.mark.parametrize("name", ["plan.toml", "legs/02-review/receipt.json", "legs/01-implement/start.json"])
@pytest.mark.parametrize("kind", ["empty", "cut", "noise", "other", "folder", "link"])
def test_whatever_stands_in_a_file_there_is_no_traceback(accepted: World, name: str, kind: str) -> None:
    path = accepted.runs / accepted.only_run() / name
    data = path.read_bytes()
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/etc/passwd")
    else:
        content = {"empty": b"", "cut": data[: len(data) // 2], "noise": b"\0\xff" * 99, "other": b'{"schema": 1}\n'}
        path.write_bytes(content[kind])
    faults = _faults(accepted.inside("verify"), accepted)
    assert [line for line in faults if line.startswith(f"{name}: ")], faults


def test_a_commit_that_is_lost_or_torn_is_named(accepted: World) -> None:
    head = accepted.receipts()[2]["head"]
    path = accepted.root / ".git" / "objects" / head[:2] / head[2:]
    path.chmod(0o600)
    path.write_bytes(b"torn")
    faults = _faults(accepted.inside("verify"), accepted)
    assert (
        f"legs/03-implement/receipt.json: the commit `{head[:12]}` that it names as head is not in the repository"
        in faults
    )


def test_a_leg_that_is_not_sealed_yet_is_no_fault(accepted: World) -> None:
    _leg(accepted, 5).unlink()
    ran = accepted.inside("verify")
    assert (ran.code, ran.out) == (0, "")
    assert "05-acceptance was begun and is not sealed" in ran.err


def test_json_gives_each_fault_and_a_summary(accepted: World) -> None:
    _append(_leg(accepted, 1, "note.md"))
    *faults, summary = accepted.inside("verify", "--json").events
    assert [(event["type"], event["path"]) for event in faults] == [("fault", str(_leg(accepted, 1, "note.md")))]
    assert (summary["type"], summary["faults"], summary["receipts"]) == ("verify", 1, 5)


def test_nothing_is_written(accepted: World) -> None:
    before = {str(path): path.stat().st_mtime_ns for path in (accepted.root / ".git").rglob("*")}
    accepted.inside("verify")
    assert {str(path): path.stat().st_mtime_ns for path in (accepted.root / ".git").rglob("*")} == before


def test_acceptance_runs_again_from_the_repository_and_the_ledger_alone(accepted: World) -> None:
    ran = accepted.inside("verify", "--again")
    assert ran.code == 0, ran
    assert ran.out == "c1: `grep -q 'return a + b' calc.py` exited 0, as then\n"
    assert "1 command of 05-acceptance ended as then" in ran.err
    assert accepted.inside("verify").code == 0, "and the run is whole as before"
    assert list(Path(os.environ["XDG_STATE_HOME"]).glob("relay/worktrees/*/*/*")) == []


def test_a_command_that_ends_otherwise_than_then_is_named(tmp_path: Path) -> None:
    world = World.simple(tmp_path)
    switch = world.folder / "switch"
    criterion = f"- it is there: `test ! -e {switch} && cat calc.py`\n- right: `grep -q 'return a + b' calc.py`\n"
    assert world.inside("run", world.spec(f"# Add\n\n## Acceptance\n\n{criterion}")).code == 0
    switch.touch()
    ran = world.inside("verify", "--again")
    assert ran.code == 6, ran
    first, second = ran.out.splitlines()
    assert first.endswith("exited 1, and exited 0 then, with another output")
    assert second.endswith("exited 0, as then")
    events = [event for event in world.inside("verify", "--again", "--json").events if event["type"] == "again"]
    assert [(event["by"], event["holds"], event["then"], event["now"]) for event in events] == [
        ("c1", False, 0, 1),
        ("c2", True, 0, 0),
    ]


def test_nothing_runs_again_where_the_record_is_at_fault_or_nothing_was_accepted(accepted: World, world: World) -> None:
    _append(_leg(accepted, 5, "note.md"))
    ran = accepted.inside("verify", "--again")
    assert (ran.code, "as then" in ran.out) == (6, False)
    world.inside("run", world.spec(), "--until", "review")
    ran = world.inside("verify", "--again")
    assert ran.code == 2
    assert "has no acceptance whose commands could run again" in ran.err


def test_swapped_tests_run_again_too(tmp_path: Path) -> None:
    suite = "python3 -B -m unittest -q"
    world = World.simple(tmp_path)
    world.commit({"tests/__init__.py": "", "tests/test_old.py": TEST.format("old", 0)})
    world.implementer({"calc.py": WHOLE, "tests/test_new.py": TEST.format("new", 1)})
    world.save(tests={"paths": ["tests/**"], "command": suite})
    assert world.inside("run", world.spec()).code == 0
    ran = world.inside("verify", "--again")
    assert ran.code == 0, ran
    told = [(line.split(":")[0], line.partition("exited ")[2][:1]) for line in ran.out.splitlines()]
    assert told == [("c1", "0"), ("tests.old", "0"), ("tests.new", "1")]
