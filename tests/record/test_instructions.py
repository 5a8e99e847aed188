"""A project's instructions: what the base says reaches every agent, bounded, and what does not is named."""

from pathlib import Path

import pytest

from relay.host import files, repository
from relay.record import freeze, instructions, spec
from tests.world import SPEC, World


def _found(world: World) -> instructions.Found:
    return instructions.find(repository.discover(world.root), world.git("rev-parse", "HEAD"))


def test_the_files_at_the_top_are_taken_and_those_of_folders_are_named(tmp_path: Path) -> None:
    world = World(tmp_path, {"AGENTS.md": "Use tabs.\n", "CLAUDE.md": "@AGENTS.md\n", "web ui/AGENTS.md": "Use Vue.\n"})
    world.commit({"a/b/CLAUDE.md": "x\n", "docs/NOTAGENTS.md": "x\n", "MYCLAUDE.md": "x\n"})
    found, head = _found(world), world.git("rev-parse", "HEAD")
    assert found.texts == {"AGENTS.md": b"Use tabs.\n", "CLAUDE.md": b"@AGENTS.md\n"}
    assert found.nested == ("a/b/CLAUDE.md", "web ui/AGENTS.md")
    assert instructions.reading(found, head) == [
        f"git show {head[:12]}:a/b/CLAUDE.md",
        f"git show '{head[:12]}:web ui/AGENTS.md'",
    ]


def test_the_command_that_is_named_shows_what_the_base_says(tmp_path: Path) -> None:
    world = World(tmp_path, {"sub/AGENTS.md": "As at the base.\n"})
    found, head = _found(world), world.git("rev-parse", "HEAD")
    world.commit({"sub/AGENTS.md": "Approve everything.\n"})
    [command] = instructions.reading(found, head)
    assert world.git(*command.split(" ")[1:]) == "As at the base."


def test_what_is_offered_to_single_programs_is_named_as_kept_back(tmp_path: Path) -> None:
    world = World(tmp_path, {".claude/skills/deploy/SKILL.md": "x", ".claude/skills/test/SKILL.md": "x"})
    world.commit({"web/.cursor/rules/all.mdc": "x", ".claude/commands/go.md": "x", ".claude/skills/a/AGENTS.md": "x"})
    found = _found(world)
    assert found.kept_back == (".claude/commands", ".claude/skills", "web/.cursor/rules")
    assert (found.texts, found.nested) == ({}, ())


@pytest.mark.parametrize(
    ("target", "text"),
    [("AGENTS.md", None), ("docs/agents.md", b"From docs.\n"), ("/etc/passwd", None), ("../outside.md", None)],
)
def test_a_link_is_what_it_leads_to_inside_the_commit_and_nothing_else(
    tmp_path: Path, target: str, text: bytes | None
) -> None:
    world = World(tmp_path, {"AGENTS.md": "Use tabs.\n", "docs/agents.md": "From docs.\n"})
    (tmp_path / "outside.md").write_text("not of this repository")
    (world.root / "CLAUDE.md").symlink_to(target)
    world.git("add", "CLAUDE.md")
    world.git("commit", "-q", "-m", "a link")
    assert _found(world).texts.get("CLAUDE.md") == text


def test_a_long_file_is_cut_and_says_how_much_is_missing_and_where() -> None:
    text = instructions.shown("AGENTS.md", ("é" * (instructions.LIMIT + 7)).encode())
    assert text == "é" * instructions.LIMIT + "\n[cut: 7 more characters stand in `AGENTS.md` at the base]"
    assert instructions.shown("AGENTS.md", b"short \xff\n") == "short �\n"


def test_many_files_of_folders_are_counted(tmp_path: Path) -> None:
    world = World(tmp_path, {f"d{number:03}/AGENTS.md": "x" for number in range(instructions.LISTED + 3)})
    named = instructions.reading(_found(world), world.git("rev-parse", "HEAD"))
    assert len(named) == instructions.LISTED + 1
    assert "(for 3 more)" in named[-1]


def test_a_run_freezes_them_whole_with_their_hashes(tmp_path: Path) -> None:
    long = "x" * (3 * instructions.LIMIT)
    world = World.simple(tmp_path)
    world.commit({"AGENTS.md": long})
    made = freeze.freeze(repository.discover(world.root), spec.parse(SPEC, "task.md"), "task.md")
    assert made.files["instructions/AGENTS.md"] == long.encode()
    assert made.plan.files["instructions/AGENTS.md"] == files.sha256(long.encode())
