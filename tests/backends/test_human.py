"""A person takes the leg by leaving a reply where Relay said."""

from pathlib import Path

from relay.backends import human
from relay.terms import Agent, Ask, Limits, Taken
from tests.backends.lanes import lane

PERSON = Agent(name="me", backend="human", vendor="human")


def ask(reply: Path) -> Ask:
    return Ask(
        run="261129-0230-fix-login",
        leg="01-implement",
        phase="implement",
        kind="work",
        boundary="implement",
        round=1,
        turn=1,
        nonce="nonce-7",
        prompt="",
        folder=str(reply.parent),
        reply_path=str(reply),
        limits=Limits(seconds=60),
        agent=PERSON,
    )


def take(reply: Path) -> Taken:
    return human.take(ask(reply), lane())


def test_a_person_takes_a_leg_by_hand_and_needs_nothing_installed(tmp_path: Path) -> None:
    assert human.by_hand
    assert human.preflight(PERSON, tmp_path) == ""


def test_the_reply_that_a_person_left_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "reply.json").write_bytes(b'{"status": "done"}\n')
    taken = take(tmp_path / "reply.json")
    assert (taken.ended_by, taken.reply) == ("reply", b'{"status": "done"}\n')


def test_a_reply_that_is_not_there_yet_is_no_reply(tmp_path: Path) -> None:
    taken = take(tmp_path / "reply.json")
    assert (taken.ended_by, taken.reply) == ("no-reply", None)
    assert "reply.json" in (taken.problem or "")


def test_a_reply_behind_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_bytes(b"{}")
    (tmp_path / "reply.json").symlink_to(tmp_path / "real.json")
    taken = take(tmp_path / "reply.json")
    assert (taken.ended_by, taken.reply) == ("no-reply", None)


def test_a_reply_in_a_folder_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "reply.json").write_bytes(b'{"status": "done"}')
    (tmp_path / "leg.io").symlink_to(tmp_path / "mine")
    taken = take(tmp_path / "leg.io" / "reply.json")
    assert (taken.ended_by, taken.reply) == ("no-reply", None)
    assert "leads through a link" in (taken.problem or "")
