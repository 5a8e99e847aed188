"""Commands that show nothing are told from those that may show something, by looking at them."""

import pytest

from relay import hollow

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


@pytest.mark.parametrize("command", NOTHING)
def test_a_command_of_the_shells_own_words_shows_nothing(command: str) -> None:
    assert hollow.constant(command)


@pytest.mark.parametrize("command", SOMETHING)
def test_a_command_that_looks_at_anything_is_run(command: str) -> None:
    assert not hollow.constant(command)
