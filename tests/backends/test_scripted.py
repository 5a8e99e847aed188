"""A script takes the leg: edits, commands and replies, the same every time."""

import hashlib
import json
from pathlib import Path

import pytest

from relay.backends import scripted
from relay.errors import Exit, RelayError
from relay.terms import Agent, Ask, Kind, Limits, Taken
from tests.backends.lanes import lane


def agent(root: Path, script: str) -> Agent:
    path = root / "script.toml"
    path.write_text(script)
    return Agent(name="atlas", backend="scripted", vendor="atlas", script=str(path))


def play(root: Path, script: str, *, turn: int = 1, kind: Kind = "work", seconds: float = 60) -> Taken:
    """Play one turn of a script in `root/leg`."""
    folder = root / "leg"
    folder.mkdir(exist_ok=True)
    asked = Ask(
        run="261129-0230-fix-login",
        leg="01-implement",
        phase="implement" if kind == "work" else "review",
        kind=kind,
        boundary="implement",
        round=1,
        turn=turn,
        nonce="nonce-7",
        prompt="",
        folder=str(folder),
        reply_path=str(root / "reply.json"),
        limits=Limits(seconds=seconds),
        agent=agent(root, script),
        env={"RELAY_LEG": "01-implement"},
    )
    return scripted.take(asked, lane())


def reply(taken: Taken) -> object:
    assert taken.ended_by == "reply", taken.problem
    assert taken.reply is not None
    return json.loads(taken.reply)


def test_a_turn_writes_edits_deletes_and_runs_in_that_order(tmp_path: Path) -> None:
    script = """
        [[implement]]
        write = {"src/new.py" = "x = 1\\n", "old.py" = "gone\\n"}
        edit = [{path = "src/new.py", old = "1", new = "2"}]
        delete = ["old.py"]
        run = ["test ! -e old.py", "cp src/new.py copy.py; echo $RELAY_LEG > leg"]
        reply = {status = "done", summary = "it is done"}
    """
    assert reply(play(tmp_path, script)) == {"status": "done", "summary": "it is done"}
    assert (tmp_path / "leg/copy.py").read_text() == "x = 2\n"
    assert (tmp_path / "leg/leg").read_text() == "01-implement\n"


def test_what_was_done_can_be_read_in_the_transcript(tmp_path: Path) -> None:
    (tmp_path / "leg").mkdir()
    seen: list[bytes] = []
    who = agent(tmp_path, '[[implement]]\nwrite = {"a" = "b"}\nrun = ["echo hello"]\nreply = {status = "done"}\n')
    asked = Ask(
        run="r",
        leg="01-implement",
        phase="implement",
        kind="work",
        boundary="implement",
        round=1,
        turn=1,
        nonce="n",
        prompt="",
        folder=str(tmp_path / "leg"),
        reply_path="",
        limits=Limits(seconds=60),
        agent=who,
    )
    scripted.take(asked, lane(sink=seen.append))
    assert b"".join(seen) == b"wrote `a` (1 bytes)\n$ echo hello\nhello\n"


def test_the_nth_table_is_for_the_nth_turn_and_the_last_one_repeats(tmp_path: Path) -> None:
    script = '[[implement]]\nreply = {status = "blocked"}\n[[implement]]\nreply = {status = "done"}\n'
    said = [reply(play(tmp_path, script, turn=turn)) for turn in (1, 2, 3)]
    assert said == [{"status": "blocked"}, {"status": "done"}, {"status": "done"}]


def test_the_version_is_the_hash_of_the_script_as_it_is_when_the_leg_is_taken(tmp_path: Path) -> None:
    script = '[[implement]]\nreply = {status = "done"}\n'
    sha256 = hashlib.sha256(script.encode()).hexdigest()[:12]
    assert play(tmp_path, script).version == sha256
    assert scripted.preflight(agent(tmp_path, script), tmp_path) == sha256


def test_a_relative_script_counts_from_the_folder_relay_runs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = scripted.preflight(agent(tmp_path, "[[implement]]\n"), tmp_path)
    monkeypatch.chdir(tmp_path)
    relative = Agent(name="atlas", backend="scripted", vendor="atlas", script="script.toml")
    assert scripted.preflight(relative, Path("/")) == version


def test_a_judge_gets_its_nonce_without_asking_and_may_name_it_anywhere(tmp_path: Path) -> None:
    script = '[[review]]\nreply = {verdict = "approve", summary = "{nonce} {other}", existing = [{path = "{nonce}"}]}\n'
    assert reply(play(tmp_path, script, kind="judge")) == {
        "nonce": "nonce-7",
        "verdict": "approve",
        "summary": "nonce-7 {other}",
        "existing": [{"path": "nonce-7"}],
    }


def test_a_judge_can_be_made_to_answer_with_a_wrong_nonce(tmp_path: Path) -> None:
    said = reply(play(tmp_path, '[[review]]\nreply = {verdict = "approve", nonce = "stale"}\n', kind="judge"))
    assert said == {"verdict": "approve", "nonce": "stale"}


def test_a_reply_given_as_text_goes_out_as_it_is(tmp_path: Path) -> None:
    assert play(tmp_path, '[[implement]]\nreply = "looks good to me"\n').reply == b"looks good to me"


def test_a_turn_without_a_reply_ends_without_one(tmp_path: Path) -> None:
    taken = play(tmp_path, '[[implement]]\nwrite = {"a" = "b"}\n')
    assert (taken.ended_by, taken.reply) == ("no-reply", None)


def test_a_turn_ends_as_it_says_and_a_quota_says_until_when(tmp_path: Path) -> None:
    taken = play(tmp_path, '[[implement]]\nended_by = "quota"\nuntil = "2026-11-29T06:00:00Z"\nreply = {}\n')
    assert (taken.ended_by, taken.until, taken.reply) == ("quota", "2026-11-29T06:00:00Z", None)
    assert taken.problem


def test_a_handover_carries_its_reply(tmp_path: Path) -> None:
    taken = play(tmp_path, '[[implement]]\nended_by = "handover"\nreply = {status = "done"}\n')
    assert (taken.ended_by, taken.reply) == ("handover", b'{"status":"done"}')


def test_a_failing_command_ends_the_leg_as_a_crash_with_what_it_wrote(tmp_path: Path) -> None:
    script = '[[implement]]\nrun = ["echo it broke; exit 3", "touch never"]\nreply = {status = "done"}\n'
    taken = play(tmp_path, script)
    assert (taken.ended_by, taken.reply) == ("crash", None)
    assert taken.problem == "`echo it broke; exit 3` exited 3"
    assert not (tmp_path / "leg/never").exists()


def test_a_command_that_removes_the_folder_under_the_next_one_is_a_crash(tmp_path: Path) -> None:
    taken = play(tmp_path, """[[implement]]\nrun = ['rm -r "$PWD"', "true"]\nreply = {}\n""")
    assert taken.ended_by == "crash"
    assert "there is no folder" in (taken.problem or "")


def test_a_command_that_takes_too_long_ends_the_leg_by_timeout(tmp_path: Path) -> None:
    taken = play(tmp_path, '[[implement]]\nrun = ["sleep 600"]\nreply = {}\n', seconds=0.2)
    assert taken.ended_by == "timeout"


def test_a_sleep_ends_with_the_time_of_the_leg(tmp_path: Path) -> None:
    taken = play(tmp_path, "[[implement]]\nsleep = 600\nreply = {}\n", seconds=0.01)
    assert (taken.ended_by, taken.reply) == ("timeout", None)


def test_a_short_sleep_does_not_change_how_a_turn_ends(tmp_path: Path) -> None:
    assert play(tmp_path, "[[implement]]\nsleep = 0.001\nreply = {}\n").ended_by == "reply"


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        ("x < 1", "x < 2", "if x < 1:\n", "if x < 2:\n"),
        ("x", "x\ny", "x\n", "x\ny\n"),
        ("gone", "", "a gone b\n", "a  b\n"),
        ("x < 1", "x", "x = 0\nx < 1\n", "x = 0\nx\n"),
    ],
    ids=["replaced", "added-to", "removed", "shortened"],
)
def test_an_edit_that_was_made_already_counts_as_done(
    tmp_path: Path, old: str, new: str, before: str, after: str
) -> None:
    edit = f"edit = [{{path = 'a.py', old = {json.dumps(old)}, new = {json.dumps(new)}}}]"
    script = f"[[implement]]\n{edit}\nreply = {{}}\n"
    (tmp_path / "leg").mkdir()
    (tmp_path / "leg/a.py").write_text(before)
    for _ in range(2):
        assert play(tmp_path, script).ended_by == "reply"
        assert (tmp_path / "leg/a.py").read_text() == after


@pytest.mark.parametrize(("before", "times"), [("b\n", 0), ("a a\n", 2)])
def test_an_edit_that_fits_nowhere_or_twice_is_a_crash_and_changes_nothing(
    tmp_path: Path, before: str, times: int
) -> None:
    (tmp_path / "leg").mkdir()
    (tmp_path / "leg/f").write_text(before)
    taken = play(tmp_path, "[[implement]]\nedit = [{path = 'f', old = 'a', new = 'z'}]\nreply = {}\n")
    assert taken.ended_by == "crash"
    assert f"stands {times} times in `f`" in (taken.problem or "")
    assert (tmp_path / "leg/f").read_text() == before


def test_an_edit_of_a_file_that_is_not_there_is_a_crash(tmp_path: Path) -> None:
    taken = play(tmp_path, "[[implement]]\nedit = [{path = 'f', old = 'a', new = 'z'}]\n")
    assert (taken.ended_by, taken.problem) == ("crash", "there is no `f` to edit")


def test_deleting_takes_folders_and_what_is_gone_already(tmp_path: Path) -> None:
    script = '[[implement]]\nwrite = {"a/b/c" = ""}\ndelete = ["a", "never-there"]\nreply = {}\n'
    assert play(tmp_path, script).ended_by == "reply"
    assert not (tmp_path / "leg/a").exists()


@pytest.mark.parametrize("name", ["../out", "/relay-out-of-the-leg", "a/../../out", "out-link/x", "file-link", "."])
def test_a_path_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "leg").mkdir()
    (tmp_path / "file").write_text("kept")
    (tmp_path / "leg/out-link").symlink_to(tmp_path)
    (tmp_path / "leg/file-link").symlink_to(tmp_path / "file")
    for action in (f"write = {{'{name}' = 'x'}}", f"delete = ['{name}']"):
        taken = play(tmp_path, f"[[implement]]\n{action}\nreply = {{}}\n")
        assert (taken.ended_by, taken.problem) == ("crash", f"the path `{name}` leads out of the leg's folder")
    assert (tmp_path / "file").read_text() == "kept"
    assert not (tmp_path / "out").exists()


def test_a_file_where_a_folder_should_be_is_a_crash(tmp_path: Path) -> None:
    taken = play(tmp_path, '[[implement]]\nwrite = {"a" = "", "a/b" = ""}\n')
    assert taken.ended_by == "crash"


@pytest.mark.parametrize(
    "script",
    ["[[implement]\n", "[[implement]]\nwrites = {}\n", "[[implement]]\nended_by = 'bored'\n", "implement = 1\n"],
    ids=["no-toml", "unknown-key", "unknown-ending", "no-tables"],
)
def test_a_script_that_is_wrong_is_refused_by_name_and_is_a_matter_of_set_up(tmp_path: Path, script: str) -> None:
    with pytest.raises(RelayError, match=r"script `.*script\.toml` is wrong") as caught:
        scripted.preflight(agent(tmp_path, script), tmp_path)
    assert caught.value.exit_code is Exit.HUMAN
    assert play(tmp_path, script).ended_by == "setup"


def test_a_script_without_this_phase_is_a_matter_of_set_up(tmp_path: Path) -> None:
    taken = play(tmp_path, "[[implement]]\n", kind="judge")
    assert taken.ended_by == "setup"
    assert "has no `[[review]]`" in (taken.problem or "")


def test_a_missing_script_and_no_script_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="there is no script `/nowhere/x`"):
        scripted.preflight(Agent(name="atlas", backend="scripted", vendor="a", script="/nowhere/x"), tmp_path)
    with pytest.raises(RelayError, match="agent `atlas` has no script"):
        scripted.preflight(Agent(name="atlas", backend="scripted", vendor="a"), tmp_path)
