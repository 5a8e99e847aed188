"""What a run and its legs look like, and that every file of theirs can be had by a word."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import HALF
from tests.world import CHECKOUT, SAFETY, World


def test_a_run_at_a_glance_shows_legs_criteria_and_the_next_command(accepted: World) -> None:
    ran = accepted.inside("show")
    run = accepted.only_run()
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert [run, "Make", "add", "add"] in lines
    assert next(line for line in lines if line[:1] == ["02-review"])[1:5] == ["review-judge", "revise", "1,", "1"]
    assert next(line for line in lines if line[:1] == ["05-acceptance"])[1:4] == ["acceptance-judge", "approve", "1/1"]
    assert next(line for line in lines if line[:1] == ["c1"])[1:3] == ["met", "relay"]
    assert "needs: approval" in ran.out
    assert f"next: relay approve {run}" in ran.out


def test_a_part_of_the_id_is_enough_and_a_wrong_one_is_refused(accepted: World) -> None:
    assert accepted.inside("show", "task").out == accepted.inside("show", accepted.only_run()).out
    ran = accepted.inside("show", "nothing")
    assert ran.code == 2
    assert "no run `nothing`" in ran.err
    assert accepted.inside("show", "task/09-review").code == 2
    assert "01-implement" in accepted.inside("show", "task/9").err


def test_findings_stay_open_until_their_judge_looks_again(world: World, accepted: World) -> None:
    world.implementer({"calc.py": HALF})
    world.reviser("review", path="calc.py", quote="return b")
    world.inside("run", world.spec(), "--until", "review")
    ran = world.inside("show")
    row = next(line.split() for line in ran.out.splitlines() if "this is wrong" in line)
    assert row[1:6] == ["blocks", "major", "located", "calc.py:2", "02-review"]
    assert "this is wrong" not in accepted.inside("show").out


def test_a_run_that_nothing_checked_says_so(world: World) -> None:
    world.inside("run", world.spec("# Something\n\nDo it.\n"), "--unchecked")
    assert "accepted (unchecked)" in world.inside("show").out
    assert world.inside("show", "--json").events[0]["outcome"] == "accepted (unchecked)"


def test_json_is_one_line_with_everything(accepted: World) -> None:
    [event] = accepted.inside("show", "--json").events
    assert (event["type"], event["outcome"], event["needs"]) == ("run", "accepted", "approval")
    assert event["receipts"] == accepted.receipts()
    assert event["plan"]["criteria"][0]["id"] == "c1"
    assert event["next"] == f"relay approve {accepted.only_run()}"
    assert event["head"] == accepted.receipts()[-1]["head"]


@pytest.mark.parametrize("wanted", ["02-review", "2", "02"])
def test_a_leg_is_found_by_id_and_by_number(accepted: World, wanted: str) -> None:
    ran = accepted.inside("show", f"task/{wanted}")
    assert ran.out.startswith(f"02-review of {accepted.only_run()}\n")
    assert "major, located, blocks, calc.py:2, since round 1  this is wrong" in ran.out
    assert "withheld: claims, reasoning, transcript" in ran.out
    assert "watched and not enforced" in ran.out
    assert str(accepted.legs()[1] / "receipt.json") in ran.out


def test_a_phase_means_its_newest_leg(accepted: World) -> None:
    assert accepted.inside("show", "task/implement").out.startswith("03-implement of ")


@pytest.mark.parametrize(
    ("word", "name"),
    [("note", "note.md"), ("receipt", "receipt.json"), ("prompt", "prompt.md"), ("reply", "reply.json")],
)
def test_each_file_of_a_leg_is_printed_by_its_word(accepted: World, word: str, name: str) -> None:
    ran = accepted.inside("show", "task/1", word)
    assert ran.code == 0
    assert ran.err == ""
    assert ran.out.rstrip("\n") == (accepted.legs()[0] / name).read_text().rstrip("\n")


def test_the_files_of_a_run_are_printed_by_their_word(accepted: World) -> None:
    folder = accepted.runs / accepted.only_run()
    assert accepted.inside("show", "task", "spec").out == (folder / "spec.md").read_text()
    assert accepted.inside("show", "task/2", "plan").out == (folder / "plan.toml").read_text()
    assert accepted.inside("show", "task", "note").out == (accepted.legs()[-1] / "note.md").read_text()
    assert accepted.inside("show", "note").out == (accepted.legs()[-1] / "note.md").read_text()
    assert accepted.inside("show", "task", "everything").code == 2


def test_a_diff_is_that_of_the_leg_or_of_the_whole_run(accepted: World) -> None:
    assert "-    return b\n+    return a + b\n" in accepted.inside("show", "task/3", "diff").out
    assert "-    return a - b\n+    return a + b\n" in accepted.inside("show", "task", "diff").out
    judge = accepted.inside("show", "task/2", "diff")
    assert (judge.code, judge.out, judge.err) == (0, "", "no changes\n")


def test_a_lost_note_is_named_with_the_command_that_makes_it_again(accepted: World) -> None:
    (accepted.legs()[0] / "note.md").unlink()
    ran = accepted.inside("show", "task/1", "note")
    assert ran.code == 6
    assert f"relay note rebuild {accepted.only_run()}/01-implement" in ran.err


def test_an_edited_note_is_shown_with_a_warning(accepted: World) -> None:
    with (accepted.legs()[0] / "note.md").open("a") as file:
        file.write("and more\n")
    ran = accepted.inside("show", "task/1", "note")
    assert ran.out.endswith("and more\n")
    assert "warning: this note is not the one that its receipt names by hash" in ran.err


def test_an_act_shows_who_did_it_and_why(accepted: World) -> None:
    accepted.inside("reject", "task", "--why", "the name is wrong")
    ran = accepted.inside("show", "task/reject")
    assert "reject, by " in ran.out
    assert "why:\n  the name is wrong\n" in ran.out
    assert accepted.inside("show", "task/reject", "reply").code == 2


def test_an_offer_says_where_everything_is(world: World) -> None:
    world.agents["person"] = {"backend": "human"}
    world.phases["implement"]["agent"] = "person"
    world.save()
    world.inside("run", world.spec())
    ran = world.inside("show", "task/1")
    places = dict(line.rsplit(None, 1) for line in ran.out.splitlines() if "/" in line and not line.startswith(" "))
    assert Path(places["work in"], "calc.py").is_file()
    assert "Make add add" in Path(places["prompt"]).read_text()
    assert json.loads(Path(places["schema"]).read_text())["properties"]["status"]
    assert Path(places["reply to"]).parent.is_dir()
    assert not Path(places["reply to"]).exists()


def test_a_leg_that_was_cut_short_is_shown_from_its_start(accepted: World) -> None:
    (accepted.legs()[-1] / "receipt.json").unlink()
    receipt = accepted.legs()[-1] / "start.json"
    start = json.loads(receipt.read_bytes())
    receipt.write_text(json.dumps({**start, "relay": {**start["relay"], "started": 1}}))
    assert "cut short" in next(line for line in accepted.inside("show").out.splitlines() if line.startswith("05-"))
    assert f"cut short: relay resume {accepted.only_run()} seals it" in accepted.inside("show", "task/5").out


def test_a_broken_chain_is_named_and_no_bug(accepted: World) -> None:
    (accepted.legs()[1] / "receipt.json").write_text("{")
    ran = accepted.inside("show")
    assert ran.code == 6
    assert "02-review/receipt.json" in ran.err
    assert accepted.inside("show", "task/1", "note").code == 0


def test_no_runs_yet_is_said(world: World) -> None:
    ran = world.inside("show")
    assert ran.code == 2
    assert "hint: relay run SPEC" in ran.err


@pytest.mark.parametrize("verb", ["show", "trace"])
def test_looking_at_a_run_loads_no_git_and_no_model(accepted: World, verb: str) -> None:
    program = (
        "import sys\nfrom relay import cli\n"
        f"assert cli.main(['-C', {str(accepted.root)!r}, {verb!r}]) == 0\n"
        "print(*{'git', 'anthropic', 'openai', 'jinja2', 'rich', 'filelock'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, check=True, text=True, timeout=SAFETY
    )
    assert done.stderr.strip() == ""
