"""What a judge is shown of a change: all of it, in the prompt or as files, and never cut in silence."""

import re
from pathlib import Path

from relay.record import briefing
from tests.loop.faults import stopped, through, untouched
from tests.world import FIXED, World


def _large(count: int) -> dict[str, str]:
    """Make files whose diff is too long for a prompt, some with odd names."""
    names = [f"part{number}.txt" for number in range(count - 3)] + ["with a blank.txt", 'quo"ted.txt', "ünïcode.txt"]
    lines = briefing.DIFF_SHOWN // count // 40 + 10
    return {name: "".join(f"{name} line {line:06d} {'x' * 20}\n" for line in range(lines)) for name in names}


def test_a_diff_too_long_for_a_prompt_is_given_as_whole_files_with_a_map(world: World) -> None:
    made = _large(12)
    world.implementer({"calc.py": FIXED, **made})
    seen = world.folder / "seen"
    judge = rf"""
import re, shutil
files = re.findall(r"bytes in `(.+?)`", prompt)
pathlib.Path({str(seen)!r}).mkdir(exist_ok=True)
for path in files:
    shutil.copy(path, {str(seen)!r})
reply(verdict="approve", summary=f"read {{len(files)}} files")
"""
    world.python("review-judge", judge, phase="review", vendor="south")
    with untouched(world):
        ran = world.inside("run", world.spec())
    through(ran)
    prompt = world.text("02-review", "prompt.md")
    mapped = dict(re.findall(r"^- `(.+)`: \d+ bytes in `(.+)`$", prompt, re.MULTILINE))
    assert set(mapped) == {"calc.py", *made}
    assert "<<<diff" not in prompt
    patches = {path: (seen / Path(file).name).read_text() for path, file in mapped.items()}
    base, head = world.receipts()[0]["start"], world.receipts()[0]["head"]
    whole = world.git("-c", "core.quotePath=false", "diff-tree", "-r", "-p", "-M", "--full-index", base, head) + "\n"
    assert sorted("".join(patches.values()).splitlines()) == sorted(whole.splitlines()), "nothing is left out"
    for name, text in made.items():
        assert sum(line.startswith("+") and line[1:] in text for line in patches[name].splitlines()) >= text.count("\n")
    review = world.receipts()[1]
    assert "diff_files" in review["crossed"]
    assert review["reviewed"] == 2 + sum(text.count("\n") for text in made.values())
    assert f"{review['reviewed']} changed lines to judge: above 150" in ran.err


def test_a_small_diff_stands_in_the_prompt_with_its_files_and_their_sizes(world: World) -> None:
    ran = world.inside("run", world.spec())
    through(ran)
    prompt = world.text("02-review", "prompt.md")
    assert "- `calc.py` +1 -1\n" in prompt
    assert "-    return a - b\n+    return a + b\n" in prompt
    assert [one["reviewed"] for one in world.receipts()] == [0, 2, 2]
    assert "above 150" not in ran.err


def test_a_diff_that_nobody_can_be_given_whole_is_judged_by_nobody(world: World) -> None:
    """The verdict is inconclusive before anything is spent on a judge."""
    line = "x" * 1023 + "\n"
    text = f"write({{'calc.py': {FIXED!r}, 'big.txt': {line!r} * {briefing.DIFF_WHOLE // 1024 + 9}}})"
    world.python("implementer", f"{text}\nreply(status='done')", phase="implement", vendor="north")
    asked = world.folder / "asked"
    world.python("review-judge", f"pathlib.Path({str(asked)!r}).touch()", phase="review", vendor="south")
    with untouched(world):
        stopped(world.inside("run", world.spec()), 4, "the diff has", "can be given at most")
    review = world.receipts()[1]
    assert (review["ended_by"], review["verdict"]) == ("setup", "inconclusive")
    assert not asked.exists()
