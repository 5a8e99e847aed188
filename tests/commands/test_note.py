"""A note can be checked, and a lost one made again: hash for hash, or not at all."""

from pathlib import Path

import pytest

from tests.world import World


def _note(world: World, number: int = 1) -> Path:
    return world.legs()[number - 1] / "note.md"


def test_every_note_of_a_run_is_a_good_one(accepted: World) -> None:
    for leg in accepted.legs():
        ran = accepted.inside("note", "lint", leg / "note.md")
        assert (ran.code, ran.out) == (0, ""), ran


def test_faults_are_told_a_line_each_with_the_file(accepted: World) -> None:
    path = accepted.folder / "mine.md"
    text = _note(accepted).read_text().replace("## Risks\n", "").replace('to = "', 'two = "')
    path.write_text(text + "a" * 40 + "\n")
    ran = accepted.inside("note", "lint", path)
    assert ran.code == 2
    assert sorted(ran.out.splitlines()) == [
        f"{path}: `to` is missing or not a text",
        f"{path}: section `## Risks` is missing",
        f"{path}: the text carries a full commit id, which can drift: write `<pending: COMMAND>`",
        f"{path}: unknown key `two`",
    ]
    assert [event["type"] for event in accepted.inside("note", "lint", path, "--json").events] == ["fault"] * 4


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"+++\n", b"+++\na = \n+++\n", b"\0" * 99])
def test_what_is_no_note_is_told_and_no_bug(world: World, data: bytes) -> None:
    (world.folder / "x.md").write_bytes(data)
    ran = world.inside("note", "lint", world.folder / "x.md")
    assert ran.code == 2
    assert ran.out.startswith(f"{world.folder / 'x.md'}: ")


def test_a_file_that_is_not_there_is_refused(world: World) -> None:
    ran = world.inside("note", "lint", "nowhere.md")
    assert ran.code == 2
    assert "there is no file `nowhere.md`" in ran.err


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_a_lost_note_is_made_again_byte_for_byte(accepted: World, number: int) -> None:
    path = _note(accepted, number)
    before = path.read_bytes()
    path.unlink()
    ran = accepted.inside("note", "rebuild", f"task/{number}")
    assert ran.code == 0, ran
    assert path.read_bytes() == before
    assert accepted.inside("verify").code == 0


def test_with_every_note_made_again_a_run_goes_on(accepted: World) -> None:
    accepted.inside("reject", "task", "--why", "call it sum")
    for number in (1, 2, 3, 4, 5):
        _note(accepted, number).unlink()
    assert accepted.inside("resume", "task").code == 6
    for number in (1, 2, 3, 4, 5):
        assert accepted.inside("note", "rebuild", f"task/{number}").code == 0
    assert accepted.inside("verify").code == 0


def test_a_note_that_was_edited_is_replaced_and_kept(accepted: World) -> None:
    before = _note(accepted).read_bytes()
    _note(accepted).write_bytes(b"mine\n")
    ran = accepted.inside("note", "rebuild", "task/1")
    assert ran.code == 0
    assert _note(accepted).read_bytes() == before
    assert _note(accepted).with_name("note.replaced.md").read_bytes() == b"mine\n"
    assert "note.replaced.md" in ran.err


def test_a_whole_note_stays_as_it_is(accepted: World) -> None:
    before = _note(accepted).stat()
    ran = accepted.inside("note", "rebuild", "task/1")
    assert ran.code == 0
    assert "is whole; nothing was written" in ran.err
    assert _note(accepted).stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("lost", [True, False])
def test_without_the_sealed_reply_no_note_is_made(accepted: World, lost: bool) -> None:  # noqa: FBT001 - a case
    _note(accepted).unlink()
    reply = _note(accepted).with_name("reply.json")
    reply.unlink() if lost else reply.write_bytes(reply.read_bytes().replace(b"turn 1", b"turn 2"))
    ran = accepted.inside("note", "rebuild", "task/1")
    assert ran.code == 6
    assert f"the reply is {'lost' if lost else 'not the one that its receipt names by hash'}: `{reply}`" in ran.err
    assert not _note(accepted).exists()


def test_without_the_reason_that_a_person_gave_no_later_note_is_made(accepted: World) -> None:
    accepted.inside("reject", "task", "--why", "call it sum")
    accepted.inside("resume", "task", "--until", "implement")
    note = _note(accepted, 7)
    assert "call it sum" in note.read_text()
    note.unlink()
    (accepted.legs()[5] / "why.md").write_text("call it minus")
    ran = accepted.inside("note", "rebuild", "task/7")
    assert ran.code == 6
    assert not note.exists()


def test_an_act_and_a_leg_that_is_not_sealed_have_no_note(accepted: World) -> None:
    accepted.inside("reject", "task", "--why", "no")
    assert accepted.inside("note", "rebuild", "task/6").code == 2
    (accepted.legs()[5] / "receipt.json").unlink()
    (_note(accepted, 5).with_name("receipt.json")).unlink()
    assert accepted.inside("note", "rebuild", "task/5").code == 6
    assert accepted.inside("note", "rebuild", "task").code == 2
