"""A patch to look at: numbers on both sides, sorts, and cuts that say what is missing."""

import subprocess

from relay.report import hunks
from tests.world import World


def read(world: World, files: dict[str, str | bytes]) -> dict[str, hunks.File]:
    """Commit files over those of the world, and read what git says of it."""
    world.commit(files)
    shape = ("diff", "--full-index", "--no-color", "HEAD~1", "HEAD")
    out = subprocess.run(["git", *shape], cwd=world.root, capture_output=True, check=True).stdout
    return {file.path: file for file in hunks.read(out)}


def test_lines_have_their_sort_and_their_numbers_on_both_sides(world: World) -> None:
    file = read(world, {"calc.py": "def add(a, b):\n    return a + b\n\n\nprint(1)"})["calc.py"]
    told = [(line.sort, line.old, line.new, line.text) for line in file.lines]
    assert told == [
        ("hunk", "", "", "@@ -1,2 +1,5 @@"),
        ("same", "1", "1", "def add(a, b):"),
        ("removed", "2", "", "    return a - b"),
        ("added", "", "2", "    return a + b"),
        ("added", "", "3", ""),
        ("added", "", "4", ""),
        ("added", "", "5", "print(1)"),
        ("note", "", "", "\\ No newline at end of file"),
    ]
    assert (file.added, file.removed, file.more) == (4, 1, 0)


def test_lines_that_look_like_headers_are_lines(world: World) -> None:
    text = "@@ -9,9 +9,9 @@\n--- a/x\n+++ b/x\ndiff --git a/x b/x\n"
    file = read(world, {"README.md": text})["README.md"]
    assert [line.text for line in file.lines if line.sort == "added"] == text.splitlines()


def test_a_long_file_is_cut_and_its_counts_stay_whole(world: World) -> None:
    found = read(world, {"long.txt": "x\n" * 5000, "wide.txt": "y" * 100_000, "b.bin": b"\0\1\2"})
    assert found["long.txt"].added == 5000
    assert len(found["long.txt"].lines) + found["long.txt"].more == 5001
    assert found["long.txt"].more > 0
    assert found["wide.txt"].lines[1].text.endswith(f"[cut: {100_000 - hunks.LETTERS} more characters]")
    assert found["b.bin"].lines == ()
    assert "Binary files" in found["b.bin"].facts


def test_many_files_are_all_named_though_not_all_are_shown(world: World) -> None:
    found = read(world, {f"f{number:03}.txt": "x\n" * 100 for number in range(40)})
    assert len(found) == 40
    assert sum(len(file.lines) for file in found.values()) <= hunks.LINES
    assert all(file.added == 100 for file in found.values())


def test_nothing_changed_is_nothing_to_look_at() -> None:
    assert hunks.read(b"") == ()
