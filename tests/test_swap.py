"""Which files are tests, and what a diff of them took out: counted, in what most people write tests in."""

import pytest

from relay import swap
from relay.host import patch


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        ("tests/**", ["tests/a.py", "tests/deep/er/b.txt"], ["test.py", "src/tests/a.py"]),
        ("tests", ["tests/a.py"], ["tests.py", "testsuite/a.py"]),
        ("tests/", ["tests/a.py"], ["tests2/a.py"]),
        ("**/*_test.go", ["a_test.go", "pkg/a_test.go"], ["pkg/a.go"]),
        ("*.spec.ts", ["a.spec.ts", "src/a.spec.ts"], ["a.ts"]),
        ("src/test/*", ["src/test/A.java", "src/test/deep/B.java"], ["src/main/A.java"]),
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
