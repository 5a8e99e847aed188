"""The tools of an agent over an API: what each one does, shows and refuses."""

import time
from pathlib import Path

import msgspec
import pytest

from relay.backends import tools
from relay.backends.purse import Over
from tests.backends.hands import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def saved(desk: Desk) -> list[Path]:
    return list(Path(desk.ask.reply_path).parent.glob("output-*.txt"))


def test_a_command_runs_in_the_folder_and_its_output_is_shown(desk: Desk) -> None:
    done = desk("bash", command="pwd; echo err >&2")
    assert (done.text, done.ok) == (f"{desk.root}\nerr", True)


def test_a_command_may_be_bash(desk: Desk) -> None:
    assert desk("bash", command="a=(1 2); [[ ${a[1]} == 2 ]] && echo yes").text == "yes"


def test_a_command_that_fails_says_with_what(desk: Desk) -> None:
    done = desk("bash", command="echo no; exit 3")
    assert (done.text, done.ok, done.wrong) == ("no\n[exit 3]", False, "")


def test_a_command_that_says_nothing_says_so(desk: Desk) -> None:
    assert desk("bash", command="true").text == "[exit 0, no output]"


def test_a_command_ends_at_its_time_and_says_how_to_get_more(desk: Desk) -> None:
    done = desk("bash", command="echo begun; sleep 600", timeout=0.5)
    assert done.text.startswith("begun\n[ended after")
    assert "give `timeout`" in done.text
    assert (done.ok, done.wrong) == (False, "timeout")


def test_no_time_is_longer_than_the_bound(desk: Desk) -> None:
    done = desk("bash", command="true", timeout=tools.MOST_SECONDS + 1)
    assert (done.ok, done.wrong) == (False, "arguments")


def test_what_a_command_leaves_running_is_ended(desk: Desk) -> None:
    desk("bash", command="(sleep 0.3; touch late) & echo begun")
    time.sleep(0.5)
    assert not (desk.root / "late").exists()


def test_a_long_output_is_shown_at_both_ends_and_kept_as_a_whole(desk: Desk) -> None:
    done = desk("bash", command="seq 100000")
    assert done.text.startswith("1\n2\n3\n")
    assert done.text.endswith("\n99999\n100000")
    assert len(done.text) < 31_000
    (path,) = saved(desk)
    assert path.read_text() == "".join(f"{number}\n" for number in range(1, 100_001))
    assert f"characters left out here; the whole is in `{path}`" in done.text
    assert "50000\n" in done.whole


def test_an_output_beyond_what_is_kept_in_memory_is_kept_on_disk(desk: Desk) -> None:
    done = desk("bash", command="head -c 3000000 /dev/zero | tr '\\0' x; echo end")
    assert done.text.endswith("xend")
    assert saved(desk)[0].stat().st_size == 3_000_004
    assert len(done.whole) < 1_100_000


def test_a_short_output_leaves_no_file(desk: Desk) -> None:
    desk("bash", command="seq 100")
    assert saved(desk) == []


def test_a_flood_of_output_is_ended(desk: Desk) -> None:
    done = desk("bash", command="yes")
    assert done.text.endswith("[ended: too much output]")
    assert (done.ok, done.wrong) == (False, "output")


def test_a_command_sees_what_the_leg_says_and_no_key_of_relays(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-very-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-also-secret")
    desk.ask = msgspec.structs.replace(desk.ask, env={"RELAY_KIND": "work"})
    done = desk("bash", command="env")
    assert "RELAY_KIND=work" in done.text
    assert "secret" not in done.text


def test_a_command_where_there_is_no_folder_is_a_matter_of_set_up(desk: Desk) -> None:
    desk.root.rmdir()
    with pytest.raises(Over) as over:
        desk("bash", command="true")
    assert over.value.ended_by == "setup"


def test_lines_are_found_by_a_pattern_below_a_path(desk: Desk) -> None:
    desk.git("init", "-q")
    desk("write", path="src/a.py", content="import os\nx = 1\n")
    desk("write", path="src/.hidden.py", content="x = 1\n")
    desk("write", path="b.py", content="x = 1\n")
    assert desk("search", pattern=r"^x\s+=\s\d", path="src").text.splitlines() == [
        "src/.hidden.py:1:x = 1",
        "src/a.py:2:x = 1",
    ]
    assert "b.py:1:x = 1" in desk("search", pattern="x = 1").text
    assert desk("search", pattern="nowhere").text == "[no line matches]"


def test_a_search_sees_new_files_and_none_that_git_ignores(desk: Desk) -> None:
    desk.git("init", "-q")
    for path in ("seen.txt", "ignored.log", ".gitignore"):
        desk("write", path=path, content="*.log\n")
    found = desk("search", pattern="log").text
    assert "seen.txt:1:" in found
    assert "ignored.log:" not in found


def test_a_pattern_that_is_none_and_a_path_outside_are_refused(desk: Desk) -> None:
    desk.git("init", "-q")
    assert not desk("search", pattern="(").ok
    assert "outside your folder" in desk("search", pattern="x", path="../..").text
    assert "git's own" in desk("search", pattern="x", path=".git").text


def test_long_lines_and_many_lines_are_cut(desk: Desk) -> None:
    desk.git("init", "-q")
    desk("write", path="a.txt", content="x" * 5000 + "\n" + "x\n" * 20_000)
    done = desk("search", pattern="x")
    assert "x" * 401 not in done.text
    assert done.text.endswith("[... more lines match: narrow it down ...]")
    assert len(done.text) < 31_000


def test_lines_are_read_with_their_numbers(desk: Desk) -> None:
    desk("write", path="a.txt", content="one\ntwo\nthree\n")
    assert desk("read", path="a.txt").text == "     1\tone\n     2\ttwo\n     3\tthree"
    assert desk("read", path=str(desk.root / "a.txt"), start=2, lines=1).text == (
        "     2\ttwo\n[... lines 3 to 3 are not shown ...]"
    )
    assert desk("read", path="a.txt", start=9).text == "[the file has 3 lines]"


def test_a_long_file_is_read_in_parts_and_says_what_is_left(desk: Desk) -> None:
    desk("write", path="a.txt", content="".join(f"line {number}\n" for number in range(1, 5001)))
    done = desk("read", path="a.txt")
    assert len(done.text) < 31_000
    last = int(done.text.splitlines()[-2].split("\t")[0])
    assert done.text.endswith(f"[... lines {last + 1} to 5000 are not shown ...]")


def test_an_empty_file_a_folder_and_what_is_no_text(desk: Desk) -> None:
    desk("write", path="sub/empty", content="")
    (desk.root / "bytes").write_bytes(b"\0\1\2")
    assert desk("read", path="sub/empty").text == "[an empty file]"
    assert desk("read", path=".").text == "bytes\nsub/"
    assert "is not text" in desk("read", path="bytes").text
    assert desk("read", path="nowhere").text == "there is no `nowhere`."


def test_a_file_is_written_as_a_whole_and_keeps_its_permissions(desk: Desk) -> None:
    assert desk("write", path="bin/run", content="#!/bin/sh\n").text == "made `bin/run` (10 bytes)"
    path = desk.root / "bin/run"
    path.chmod(0o755)
    assert desk("write", path="bin/run", content="#!/bin/sh\ntrue\n").text == "replaced `bin/run` (15 bytes)"
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("#!/bin/sh\ntrue\n", 0o755)
    assert [entry.name for entry in path.parent.iterdir()] == ["run"]


def test_an_edit_replaces_one_place(desk: Desk) -> None:
    desk("write", path="a.txt", content="one\ntwo\n")
    done = desk("edit", path="a.txt", old="two", new="2")
    assert (done.text, done.changed) == ("edited `a.txt` at line 2", True)
    assert (desk.root / "a.txt").read_text() == "one\n2\n"


@pytest.mark.parametrize(("old", "times"), [("three", 0), ("o", 2)])
def test_an_edit_that_fits_no_place_or_several_changes_nothing(desk: Desk, old: str, times: int) -> None:
    desk("write", path="a.txt", content="one\ntwo\n")
    done = desk("edit", path="a.txt", old=old, new="x")
    assert f"stands {times} times in `a.txt`, not once" in done.text
    assert (done.ok, done.changed, (desk.root / "a.txt").read_text()) == (False, False, "one\ntwo\n")


def test_an_edit_keeps_the_line_ends_of_the_file(desk: Desk) -> None:
    (desk.root / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    assert desk("edit", path="a.txt", old="one\ntwo\n", new="1\n2\n").ok
    assert (desk.root / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


def test_an_edit_leaves_bytes_alone_that_are_no_utf_8(desk: Desk) -> None:
    (desk.root / "a.txt").write_bytes(b"caf\xe9\nold\n")
    assert desk("edit", path="a.txt", old="old", new="new").ok
    assert (desk.root / "a.txt").read_bytes() == b"caf\xe9\nnew\n"


def test_an_edit_that_changes_nothing_is_none(desk: Desk) -> None:
    desk("write", path="a.txt", content="one\n")
    assert not desk("edit", path="a.txt", old="one", new="one").changed


def test_text_that_is_no_unicode_is_refused(desk: Desk) -> None:
    done = desk.raw("write", '{"path": "a", "content": "\\ud800"}')
    assert not done.ok
    assert not (desk.root / "a").exists()


def test_every_tool_has_a_schema_that_names_and_closes_its_arguments(desk: Desk) -> None:
    offered = {tool.name: tool for tool in tools.offered(desk.ask)}
    assert list(offered) == ["bash", "search", "read", "write", "edit", "reply"]
    for name, tool in offered.items():
        assert (tool.schema["type"], tool.schema["additionalProperties"]) == ("object", False)
        assert tool.description.endswith(".")
        assert name == "reply" or tool.schema["required"]


def test_places_that_overlap_are_more_than_one(desk: Desk) -> None:
    desk("write", path="a.txt", content="aaa\n")
    done = desk("edit", path="a.txt", old="aa", new="b")
    assert done.text == "`old` stands 2 times in `a.txt`, not once. Make `old` longer."
    assert (desk.root / "a.txt").read_text() == "aaa\n"


def test_a_command_longer_than_an_argument_may_be_runs_all_the_same(desk: Desk) -> None:
    text = "x" * 200_000
    done = desk("bash", command=f"read -r line || echo nothing to read\ncat > big <<'END'\n{text}\nEND\nexit 3")
    assert (done.text, done.ok) == ("nothing to read\n[exit 3]", False)
    assert (desk.root / "big").read_text() == f"{text}\n"


def test_a_nul_is_refused_and_ends_nothing(desk: Desk) -> None:
    assert desk("bash", command="echo a\0b").text == "No command can have a NUL in it."
    assert desk("search", pattern="a\0b").wrong == "pattern"
    assert desk("search", pattern="a", path="a\0b").text.startswith("`a\0b` is no path")


def test_a_pattern_or_a_path_longer_than_an_argument_may_be_is_refused(desk: Desk) -> None:
    assert desk("search", pattern="x" * 200_000).wrong == "pattern"
    assert "is no path: it is longer than" in desk("search", pattern="a", path="x" * 200_000).text
    assert len(desk("read", path="x" * 200_000).text) < 500
