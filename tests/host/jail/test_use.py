"""What people do in a jail works: tests, compilers, git, services of a test's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relay.host import jail
from relay.host.jail.mounts import Access
from tests.host.jail import cell
from tests.host.jail.cell import Cell

EACH = pytest.mark.parametrize("access", Access, ids=lambda access: access.value)
MAY_WRITE = pytest.mark.parametrize("access", [Access.SCRATCH, Access.WRITE], ids=lambda access: access.value)


def done(held: Cell, command: str | list[str], access: Access) -> str:
    """Run a command that must end well and change nothing that it should not."""
    ended, wrong = held.run(command, access)
    assert (ended.code, ended.ended, wrong) == (0, "exit", []), ended.text
    return ended.text


def needs(program: str) -> None:
    if shutil.which(program, path="/usr/local/bin:/usr/bin:/bin") is None:
        pytest.skip(f"`{program}` is not installed for everybody here")


@MAY_WRITE
def test_pytest_runs_and_may_write_its_caches(held: Cell, access: Access) -> None:
    python = cell.python_of(held.uid)
    if subprocess.run([python, "-c", "import pytest"], check=False, capture_output=True).returncode:
        pytest.skip(f"`{python}` has no pytest")
    write = 'printf \'def test_a(tmp_path):\\n    (tmp_path / "x").write_text("1")\\n\' > test_a.py'
    said = done(held, f"{write}; $PY -m pytest -q -p xdist -n 0 test_a.py; ls -d .pytest_cache", access)
    held.restore()
    assert "1 passed" in said
    assert ".pytest_cache" in said


@MAY_WRITE
def test_unittest_runs(held: Cell, access: Access) -> None:
    script = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): import a; self.assertEqual(a.a, 1)\n"
    write = [cell.python_of(held.uid), "-c", f"open('test_u.py', 'w').write({script!r})"]
    held.run(write, Access.WRITE)
    said = done(held, "$PY -m unittest -q test_u 2>&1; ls -d __pycache__", access)
    held.restore()
    assert "OK" in said


@MAY_WRITE
def test_node_runs(held: Cell, access: Access) -> None:
    needs("node")
    script = 'const fs = require("fs"); fs.writeFileSync("out.txt", String(require("os").cpus().length > 0))'
    assert done(held, f"node -e '{script}' && cat out.txt && rm out.txt", access) == "true"
    held.restore()


@MAY_WRITE
def test_a_compiler_builds_what_then_runs(held: Cell, access: Access) -> None:
    needs("gcc")
    said = done(
        held, "echo 'int main(){return 7;}' > m.c && gcc -o m m.c && ./m; test $? = 7 && rm m m.c && echo ran", access
    )
    held.restore()
    assert said == "ran\n"


@EACH
@pytest.mark.parametrize(
    "command",
    [
        *("status --short", "diff --stat HEAD", "log --oneline", "show --stat", "blame a.py", "grep a", "ls-files"),
        *("worktree list", "rev-parse HEAD", "describe --always --dirty", "stash list", "branch -a", "reflog -1"),
    ],
)
def test_git_answers_questions(held: Cell, command: str, access: Access) -> None:
    done(held, f"git {command}", access)


@EACH
def test_git_sees_a_clean_tree(held: Cell, access: Access) -> None:
    assert done(held, "git status --porcelain; git rev-parse --abbrev-ref HEAD", access) == "HEAD\n"


@EACH
def test_a_repository_of_a_test_can_be_made_in_tmp(held: Cell, access: Access) -> None:
    who = "-c user.name=a -c user.email=a@x"
    make = f"git init -q /tmp/r && cd /tmp/r && echo x > x && git add x && git {who} commit -qm x"
    assert len(done(held, f"{make} && git rev-parse HEAD && rm -rf /tmp/r", access)) == 41


SERVES = """
import multiprocessing, socket, threading, tempfile, os
def double(n): return 2 * n
if __name__ == '__main__':
    server = socket.create_server(('127.0.0.1', 0))
    threading.Thread(target=lambda: server.accept()[0].sendall(b'hello')).start()
    print(socket.create_connection(server.getsockname()).recv(5).decode())
    named = socket.socket(socket.AF_UNIX); named.bind(tempfile.mkdtemp() + '/s'); named.listen()
    socket.socket(socket.AF_UNIX).connect(named.getsockname())
    with multiprocessing.Pool(2) as pool: print(pool.map(double, [1, 2]))
    print(os.path.expanduser('~'), os.access(os.path.expanduser('~'), os.W_OK))
"""


@EACH
def test_a_test_may_serve_itself_and_share_work(held: Cell, access: Access) -> None:
    said = done(held, f"cat > /tmp/s.py <<'E'\n{SERVES}\nE\n$PY /tmp/s.py", access)
    assert said == "hello\n[2, 4]\n/tmp/home True\n"


@EACH
def test_what_a_command_needs_to_know_is_there(held: Cell, access: Access) -> None:
    said = done(held, 'id -u; pwd; echo "$TERM $HOME $TMPDIR"; echo $PATH; hostname; date >/dev/null', access)
    assert said.split("\n")[:3] == [str(held.uid), str(held.tree), "dumb /tmp/home /tmp"]
    assert "\nrelay\n" in said


def test_each_access_does_what_it_says(held: Cell) -> None:
    refused, _ = held.run("echo x > new", Access.READ)
    assert "Read-only file system" in refused.text
    done(held, "echo x > new; test -s new", Access.SCRATCH)
    assert not (held.tree / "new").exists()
    done(held, "echo x > new", Access.WRITE)
    assert (held.tree / "new").read_text(encoding="utf-8") == "x\n"
    held.restore()


def test_a_folder_that_may_be_written_takes_the_reply(held: Cell) -> None:
    replies = held.tree.parent / "01.io"
    mounts = jail.around(held.repo, held.lease, Access.READ, home=held.home, writable=(replies,))
    rung, command = cell.rung_of(held.uid), f"echo mine > {replies}/mine.json"
    ended = cell.as_user(held.uid, lambda: jail.jailed(rung, command, mounts, env={}, limits=cell.LIMITS))
    assert (ended.code, (replies / "mine.json").read_text(encoding="utf-8")) == (0, "mine\n")
    (replies / "mine.json").unlink()
    held.refresh()


@EACH
@pytest.mark.parametrize("name", ["with space", "co:lon,comma", "quo'te\"s", "ü\u2603", "back\\slash"])
def test_any_name_of_a_folder_works(tmp_path: Path, name: str, access: Access) -> None:
    tree = tmp_path / name
    tree.mkdir()
    (tree / "here").write_text("yes\n", encoding="utf-8")
    mounts = jail.Mounts(tree=tree, access=access, home=Path("/nonexistent"))
    rung = cell.rung_of(os.geteuid())
    assert jail.jailed(rung, "cat here", mounts, env={}, limits=cell.LIMITS).text == "yes\n"


def test_programs_of_the_home_that_path_leads_to_can_be_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "tree").mkdir(parents=True)
    (home / ".local/bin").mkdir(parents=True)
    (home / ".local/share/uv/tools/x/bin").mkdir(parents=True)
    program = home / ".local/share/uv/tools/x/bin/hello"
    program.write_text("#!/bin/sh\necho hello\n", encoding="utf-8")
    program.chmod(0o755)
    (home / ".local/bin/hello").symlink_to(program)
    path = f"{home}/.local/bin:/usr/bin:/bin"
    mounts = jail.Mounts(tree=home / "tree", access=Access.READ, home=home, readable=jail.readable(path, home))
    rung = cell.rung_of(os.geteuid())
    assert jail.jailed(rung, "hello", mounts, env={"PATH": path}, limits=cell.LIMITS).text == "hello\n"
    assert sys.prefix  # the interpreter's own folders are shown too
