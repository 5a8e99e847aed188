"""In a jail the commands of a reply share one checkout, and none finds anything of the one before."""

from pathlib import Path

import pytest

from relay.host import jail
from tests.loop.faults import through, untouched, worktrees
from tests.world import FIXED, World

LACKS = "grep -q PI calc.py || "


def _finding(number: int, command: str, files: dict[str, str] | None = None) -> dict[str, object]:
    return {
        "severity": "major",
        "title": f"{number}",
        "path": "calc.py",
        "line": 1,
        "quote": "def add(a, b):",
        "repro": {
            "command": command,
            "expect_exit": 3,
            "files": files or {},
        },
    }


@pytest.mark.skipif(not jail.choose("auto")[0].holds, reason="no jail holds here")
def test_commands_of_a_reply_leave_nothing_for_the_next_one(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    clean = "test ! -e left -a ! -e deep && grep -q 'A calculator' README.md && "
    findings = [
        _finding(1, f"{LACKS}exit 3"),
        _finding(2, f"echo x > left; rm README.md; ln -s {outside} README.md; {LACKS}exit 3", {"README.md": "changed"}),
        _finding(3, f"{clean}{{ {LACKS}exit 3; }}"),
        _finding(4, f"test -e deep/er.txt && {{ {LACKS}exit 3; }}", {"deep/er.txt": "x"}),
        _finding(5, f"{clean}{{ {LACKS}exit 3; }}"),
        _finding(6, "test -e left && exit 3"),
    ]
    world = World(tmp_path, {"calc.py": "def add(a, b):\n    return a - b\n", "README.md": "A calculator\n"})
    reply: dict[str, object] = {"verdict": "revise", "findings": findings}
    work = [{"write": {"calc.py": text}, "reply": {"status": "done"}} for text in (FIXED, f"{FIXED}\n\nPI = 3\n")]
    world.script("worker", *work, phase="implement", vendor="north")
    world.script("critic", {"reply": reply}, {"reply": {"verdict": "approve"}}, phase="review", vendor="south")
    world.script("judge", {"reply": {"verdict": "approve"}}, phase="acceptance", vendor="south")
    world.save(jail={"mode": "required"})
    with untouched(world):
        through(world.inside("run", world.spec()))
    review, again = (receipt for receipt in world.receipts() if receipt["phase"] == "review")
    assert [finding["evidence"] for finding in review["findings"]] == ["confirmed"] * 5 + ["unfounded"]
    assert [one["how"] for one in again["settled"]] == ["fixed"] * 5
    assert outside.read_text() == "mine"
    assert worktrees() == []
