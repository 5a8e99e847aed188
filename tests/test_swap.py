"""Which files are tests, and what a diff of them took out: counted, in what most people write tests in."""

from pathlib import Path

import pytest

from relay import swap
from relay.host import patch, repository
from relay.swap import failures, patterns, settings
from tests.world import World


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        ("tests/**", ["tests/a.py", "tests/deep/er/b.txt"], ["test.py", "src/tests/a.py"]),
        ("tests", ["tests/a.py"], ["tests.py", "testsuite/a.py"]),
        ("tests/", ["tests/a.py"], ["tests2/a.py"]),
        ("**/*_test.go", ["a_test.go", "pkg/a_test.go"], ["pkg/a.go"]),
        ("*.spec.ts", ["a.spec.ts", "src/a.spec.ts"], ["a.ts"]),
        ("src/test/*", ["src/test/A.java", "src/test/deep/B.java"], ["src/main/A.java"]),
        (
            "src/**/test_*.py",
            ["src/test_a.py", "src/a/b/test_x.py"],
            ["test_a.py", "src/a/latest_x.py", "lib/test_a.py"],
        ),
        ("**/a/**/b.py", ["a/b.py", "x/a/y/z/b.py"], ["b.py", "a/c.py", "xa/b.py"]),
        ("./tests/**", ["tests/a.py"], ["a.py"]),
        (".//tests//unit/", ["tests/unit/a.py"], ["tests/a.py"]),
        ("test_*.py", ["test_a.py", "pkg/test_a.py"], ["pkg/a_test.py"]),
        ("test", ["test/a.py", "pkg/test/a.py"], ["contest/a.py"]),
        ("t/[id]", ["t/i/a.py", "t/[id]/a.py"], ["t/x/a.py"]),
    ],
)
def test_a_pattern_means_the_files_that_a_person_means(pattern: str, fits: list[str], others: list[str]) -> None:
    assert [path for path in [*fits, *others] if swap.fits(path, [pattern])] == fits
    assert not swap.fits(fits[0], [])


def _counts(*lines: str) -> tuple[int, int, int, int, int]:
    facts, _, _ = swap.count(["--- a/t\n+++ b/t\n@@ -1,9 +1,9 @@\n" + "\n".join(lines)])
    return (
        facts.tests_removed,
        facts.tests_added,
        facts.skips_added,
        facts.assertions_removed,
        facts.assertions_added,
    )


@pytest.mark.parametrize(
    ("test", "skip", "assertion"),
    [
        ("    def test_sum(self):", "    @unittest.skip('later')", "        self.assertEqual(add(1, 2), 3)"),
        ("async def test_sum():", "@pytest.mark.xfail", "    assert add(1, 2) == 3"),
        ("def test_sum():", "    pytest.skip('later')", "    with pytest.raises(ValueError):"),
        ("  it('adds', () => {", "  it.skip('adds', () => {", "    expect(add(1, 2)).toBe(3);"),
        ('  test("adds", async () => {', "  xit('adds', () => {", "    assert.equal(add(1, 2), 3);"),
        ("func TestSum(t *testing.T) {", "\tt.Skip()", '\t\tt.Errorf("no")'),
        ("    fn test_sum() {", "    #[ignore]", "        assert_eq!(add(1, 2), 3);"),
        ("    public void testSum() {", "    @Disabled", "        assertEquals(3, add(1, 2));"),
        ("TEST(Calc, Sum) {", "    GTEST_SKIP();", "    EXPECT_EQ(add(1, 2), 3);"),
    ],
)
def test_tests_skips_and_assertions_are_counted(test: str, skip: str, assertion: str) -> None:
    assert _counts(f"-{test}", f"-{assertion}") == (1, 0, 0, 1, 0)
    assert _counts(f"+{test}", f"+{assertion}") == (0, 1, 0, 0, 1)
    assert _counts(f"+{skip}")[2] == 1
    assert _counts(f"-{skip}", f"+{skip}")[2] == 0, "one that was there before is none more"
    assert _counts(f" {test}", f" {skip}", f" {assertion}") == (0, 0, 0, 0, 0)


def test_a_test_that_is_moved_or_changed_is_neither_removed_nor_added() -> None:
    assert _counts("-def test_sum():", "+def test_sum(fixture):")[:2] == (0, 0)


def test_removed_tests_and_skips_are_named() -> None:
    _, removed, skips = swap.count(["\n@@ -1 +1 @@\n-def test_a():\n-def test_b():\n+def test_b(x):\n+@unittest.skip"])
    assert (removed, skips) == (("test_a",), ("@unittest.skip",))


def test_ordinary_code_counts_as_nothing() -> None:
    assert _counts("-    waiting = submit(task)", "-def testimony(court):", "+-- a comment", "--- another") == (
        1,
        0,
        0,
        0,
        0,
    )
    assert _counts("-    latest = fit(model)", "+    skipped += 1", "+    expected = 3") == (0, 0, 0, 0, 0)


def test_a_patch_is_taken_apart_whatever_the_files_are_called() -> None:
    names = ['"b/t\\303\\274b\\tx"', "b/a b/c d", "b/plain"]
    whole = b"".join(
        f"diff --git {name.replace('b/', 'a/', 1)} {name}\n--- x\n+++ y\n@@ -1 +1 @@\n-diff --git a/z b/z\n".encode()
        for name in names
    )
    renamed = (
        b"diff --git a/old b/new name\nsimilarity index 90%\nrename from old\nrename to new name\n@@ -1 +1 @@\n-x\n"
    )
    found = patch.pieces(whole + renamed)
    assert [piece.path for piece in found] == ["tüb\tx", "a b/c d", "plain", "new name"]
    assert sum(piece.size for piece in found) == len(whole + renamed)
    assert patch.pieces(b"") == []


FAILURES = {
    "test_a (tests.a.T.test_a)": "ERROR: test_a (tests.a.T.test_a)\nFAIL: test_a (tests.a.T.test_a) (i=1)",
    "tests/test_a.py::T::test_a[1 2]": "FAILED tests/test_a.py::T::test_a[1 2] - ValueError: 3 - 4",
    "tests/test_a.py::test_sub": "SUBFAILED(i=0) tests/test_a.py::test_sub - assert 0",
    "tests/test_b.py": "ERROR tests/test_b.py - ImportError",
    "TestSum/negative": "    --- FAIL: TestSum/negative (0.00s)",
    "calc::tests::sum": "test calc::tests::sum ... FAILED",
    "Calc.Sum": "[  FAILED  ] Calc.Sum (3 ms)",
    "Calc \u203a adds": "  \u25cf Calc \u203a adds",
    "adds": "not ok 3 - adds # time=2ms",
    "subtracts": "\u2716 subtracts (0.52ms)",
    "CalcTest.testSum": "[ERROR]   CalcTest.testSum:12 expected: <5> but was: <-1>",
}


@pytest.mark.parametrize(("name", "output"), FAILURES.items())
def test_a_test_that_failed_is_named_by_what_test_programs_print(name: str, output: str) -> None:
    assert failures.failing(f"some words\n{output}\n1 failed\n") == {name}
    assert failures.failing(f"{output}\n[... 12 bytes left out ...]\nend\n") == frozenset(), "some may be missing"


def test_a_test_program_that_ran_without_a_failure_names_none() -> None:
    said = [
        "5 passed in 0.1s",
        "Ran 0 tests in 0.000s\n\nOK",
        "ERROR: not found: /x/test_a.py::test_z",
        "test result: ok.",
    ]
    assert [failures.failing(one) for one in said] == [frozenset()] * len(said)
    assert all(map(failures.RAN.search, said))
    assert not failures.RAN.search("tests/test_a.py:3: error: Name is not defined\nFound 1 error in 1 file")


def test_settings_of_tests_are_found_wherever_they_lie() -> None:
    assert all(map(patterns.steers, ["conftest.py", "a/b/conftest.py", "pytest.ini", "tox.ini"]))
    assert not any(map(patterns.steers, ["my_conftest.py", "pyproject.toml", "conftest.py/a", "setup.cfg"]))


@pytest.mark.parametrize(
    ("path", "text", "steers", "other"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\na = "%s"\n', "-k x", None),
        ("pyproject.toml", '[project.entry-points.pytest11]\na = "%s"\n', "plug", None),
        ("pyproject.toml", '[project]\nname = "%s"\n', None, "calc"),
        ("pyproject.toml", "[tool.pytest\n# %s\n", "not TOML", None),
        ("web/package.json", '{"scripts": {"test": "%s"}}', "true", None),
        ("web/package.json", '{"version": "%s"}', None, "2"),
        ("setup.cfg", "[tool:pytest]\naddopts = %s\n", "-k x", None),
        ("setup.cfg", "[metadata]\nname = %s\n", None, "calc"),
        ("jest.config.mjs", "// %s\n", "any", None),
        ("Makefile", "# %s\n", None, "any"),
    ],
)
def test_a_mixed_file_steers_where_its_part_about_tests_changed(
    tmp_path: Path, path: str, text: str, steers: str | None, other: str | None
) -> None:
    world = World(tmp_path, {path: text % "before"})
    base = world.git("rev-parse", "HEAD")
    head = world.commit({path: text % (steers or other)})
    repo = repository.discover(world.root)
    assert settings.steered(repo, base, head, [path]) == ([path] if steers else [])
