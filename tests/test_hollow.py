"""Commands that show nothing are told from those that may show something, by looking at them."""

import pytest

from relay import hollow
from relay.terms import Repro

NOTHING = [
    *("", " \n", "false", "true", ":", "exit 1", "exit", "return 3", "echo it broke", "printf 'x'; exit 2", "sleep 1"),
    *("! true", "test 1 = 2", "[ 1 -eq 2 ]", "[[ a == b ]]", "test -z ''", "test -n x", "/bin/false", "X=1 Y=2 false"),
    *("true; false", "true && exit 2 || exit 3", "(exit 4)", "{ false; }", "false | true", "false\nexit 1", "false &"),
    *("sh -c 'exit 3'", "bash -ec false", "env A=b false", "timeout 5 false", "nice -n 5 false", "command false"),
    *("if true; then exit 1; fi", "exec false", "false # a comment", "bash -c \"sh -c 'test 1 = 2'\""),
]
SOMETHING = [
    *(
        "python3 -m unittest",
        "grep -q x a.py",
        "test -f a.py",
        "[ -e a ]",
        "! test -d src",
        "./check.sh",
        "false < a.py",
    ),
    *("echo *.py", "exit $(wc -l < a.py)", "test `cat a` = 1", "sh check.sh", "false; make", "cat a.py || exit 1"),
    *(
        "test a.py -nt b.py",
        "echo 'not closed",
        "python3 -c 'raise SystemExit(1)'",
        "true > a.py",
        "[ -s a ] && exit 1",
    ),
    *("timeout 5 make", "env make", "sh -c 'make test'"),
]


SHOWING = [
    *("cat calc.py; exit 1", "sed -n 1,20p calc.py; false", "sed -n '1,$p' calc.py\nfalse", "cat calc.py && false"),
    *(
        "cat calc.py | false",
        "! cat calc.py",
        "date; id; exit 3",
        "echo $RANDOM >&2; false",
        "grep -n x calc.py; exit 1",
    ),
    *("cat calc.py; (exit 1)", "cat calc.py; test 1 = 2", "ls -la; sh -c 'exit 3'", "sh -c 'cat calc.py; exit 1'"),
    *("wc -l < calc.py; false", "cat *.py; exit 1", "true # x\nfalse", "x=$(cat calc.py); echo $x; exit 1"),
    *("cat calc.py 2>/dev/null; exit 1", "{ cat calc.py; exit 1; }", "cat a.py; cat b.py && exit 2", "make; exit 1"),
    *("python3 -m unittest; exit 1", "python3 -c 'import calc' | false", "sh see.sh", "./see.sh", "# see\nsh ./see.sh"),
]
DECIDED = [
    *(
        "grep -q x a.py || exit 3",
        "cat a.py",
        "diff a b",
        "! grep -q x a.py",
        "test -f a.py && exit 1",
        "make || exit 1",
    ),
    *("grep -q x a.py || exit 0; exit 1", "set -e; ./x; exit 1", "cat a | python3 x.py", "(cd src && make)"),
    *("python3 - <<EOF\nimport x\nEOF\n", "if ! python3 x.py; then exit 1; fi", "# see\npython3 -m unittest"),
    *('x=$(cat a.py); test "$x" = y', "test $(wc -l < a.py) -lt 9", "! cat a.py || exit 1", "cat a.py | grep -q x"),
    *(
        'while read l; do test "$l" = x && exit 1; done < a.py',
        "sh other.sh",
        "exit $(wc -l < a.py)",
        "true; echo `make`",
    ),
]


@pytest.mark.parametrize("command", NOTHING)
def test_a_command_of_the_shells_own_words_shows_nothing(command: str) -> None:
    assert hollow.constant(command)


@pytest.mark.parametrize("command", SOMETHING)
def test_a_command_that_looks_at_anything_is_run(command: str) -> None:
    assert not hollow.constant(command)


@pytest.mark.parametrize("command", SHOWING)
def test_an_exit_that_a_constant_settles_does_not_come_from_code(command: str) -> None:
    assert hollow.idle(Repro(command=command, files={"see.sh": "#!/bin/sh\ncat calc.py\nexit 1\n"}), "x = 1\n")


@pytest.mark.parametrize("command", DECIDED)
def test_an_exit_that_files_or_code_settle_may_show_something(command: str) -> None:
    assert not hollow.idle(Repro(command=command), "x = 1\n")
    assert not hollow.constant(command)


def test_an_output_that_is_expected_counts_unless_it_stands_there_anyway() -> None:
    runs = "python3 a.py; exit 1"
    assert not hollow.idle(Repro(command=runs, expect_output="KeyError"), "x = 1\n")
    assert hollow.idle(Repro(command=runs, expect_output="x  =  1"), "x = 1\n")
    assert hollow.idle(Repro(command=f"echo broken; {runs}", expect_output="broken"), "x = 1\n")
    prints = Repro(command="cat b.py; exit 1", expect_output="anything")
    assert (hollow.idle(prints, "x = 1\n"), hollow.idle(prints, "x = 1\n", showed=True)) == (False, True)


def test_what_differs_every_time_is_no_difference_nor_is_the_text_of_a_file() -> None:
    text = "def add(a, b):\n    return a - b\n"
    here = (
        "exit",
        "1",
        f"pid 4711 at 12:30:01, 0x7f00 in /tmp/a1\n1:def add(a, b):\n calc.py:2:    return a - b\n{text}",
    )
    assert hollow.alike(here, ("exit", "1", "pid 815 at 12:30:59, 0x7f80 in /tmp/b2\n"), text)
    assert not hollow.alike(here, ("exit", "2", here[2]), text)
    assert not hollow.alike(here, ("exit", "1", "No module named calc"), text)
    assert hollow.prints(here, text)
    assert not hollow.prints(("exit", "1", "AssertionError"), text)


def test_a_command_that_only_looks_is_told_from_one_that_runs_a_file() -> None:
    assert all(map(hollow.looking, ["test -f a.py", "! grep -q skip tests/*", "ls tests | wc -l", "git diff --quiet"]))
    assert not any(
        map(hollow.looking, ["make", "find . -exec sh {} ;", "cat a | sh", "git bisect run x", "grep x `y`"])
    )
    assert all(hollow.runs(one, ["t/a.sh"]) for one in ("sh t/a.sh", "./t/a.sh -v", "X=1 python3 -B t/a.sh; true"))
    assert not any(hollow.runs(one, ["t/a.sh"]) for one in ("mypy t/a.sh", "python3 -m mypy t/a.sh", "sh t/b.sh", "'"))
