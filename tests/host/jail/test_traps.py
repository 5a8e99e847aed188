"""What a jail that looks right lets through, each found by running it (sandbox.md section 4)."""

import ctypes
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest import mock

import pytest

from relay.errors import Exit, RelayError
from relay.host import jail, pids
from relay.host.jail import bwrap, seccomp
from relay.host.jail.mounts import Access
from relay.terms import Limits, Process
from tests.host.jail import attacks, cell
from tests.host.jail.cell import BOUNDS, Cell
from tests.world import CHECKOUT, SAFETY

OPENS = """
import os
for top, folders, names in os.walk('/proc'):
    folders[:] = [f for f in folders if not f.isdecimal() and f not in ('self', 'thread-self')]
    for name in names:
        try:
            os.close(os.open(f'{top}/{name}', os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            continue
        if top != '/proc/pressure':  # anybody may ask there to be told of a shortage
            print(f'{top}/{name}')
"""


def test_nothing_of_the_kernel_can_be_written_through_proc(held: Cell) -> None:
    ended, _ = held.run([cell.python_of(held.uid), "-c", OPENS], Access.WRITE)
    assert (ended.code, ended.text) == (0, "")


def test_the_shadow_of_passwords_cannot_be_read(held: Cell) -> None:
    ended, _ = held.run(
        "cat /etc/shadow /etc/gshadow /etc/shadow- /etc/sudoers /etc/ssl/private/* 2>/dev/null", Access.READ
    )
    assert ended.text == ""


def test_no_capability_is_left(held: Cell) -> None:
    ended, _ = held.run("grep -h ^Cap /proc/self/status /proc/1/status", Access.WRITE)
    assert {line.split()[1] for line in ended.text.splitlines()} == {"0" * 16}


@pytest.mark.parametrize("access", Access, ids=lambda access: access.value)
@pytest.mark.parametrize("what", ["a link", "another file", "nothing"])
def test_no_mount_is_led_astray_by_what_stands_where_the_pointer_was(held: Cell, access: Access, what: str) -> None:
    pointer, kept = held.tree / ".git", (held.tree / ".git").read_bytes()
    mounts, rung = held.mounts(access), cell.rung_of(held.uid)
    pointer.unlink()
    if what == "a link":
        pointer.symlink_to(held.home / "made-on-the-host")
    elif what == "another file":
        pointer.write_bytes(b"gitdir: /elsewhere\n")
    before = cell.state(held.home, None)
    try:
        with pytest.raises(RelayError, match=r"no jail is built on `.*\.git`: it is not what it was") as caught:
            jail.jailed(rung, ["true"], mounts, env={}, limits=cell.LIMITS)
        assert cell.state(held.home, None) == before
    finally:
        pointer.unlink(missing_ok=True)
        pointer.write_bytes(kept)
        os.chown(pointer, held.uid, held.uid)
        held.refresh()
    assert caught.value.exit_code is Exit.HUMAN


def test_no_mount_lies_where_an_agent_writes(held: Cell) -> None:
    (held.tree / "cache").symlink_to(held.home / "victim")
    mounts = jail.Mounts(tree=held.tree, access=Access.WRITE, home=held.home, readable=(held.tree / "sub",))
    try:
        with pytest.raises(RelayError, match="where an agent writes"):
            jail.jailed(cell.rung_of(held.uid), ["true"], mounts, env={}, limits=cell.LIMITS)
        through = jail.Mounts(tree=held.tree, access=Access.WRITE, home=held.home, readable=(held.tree / "cache/x",))
        whole = jail.Mounts(tree=held.tree, access=Access.READ, home=held.home, readable=(held.home.parent,))
        with pytest.raises(RelayError, match="would show the home"):
            jail.jailed(cell.rung_of(held.uid), ["true"], whole, env={}, limits=cell.LIMITS)
        with pytest.raises(RelayError, match="reached through a link"):
            jail.jailed(cell.rung_of(held.uid), ["true"], through, env={}, limits=cell.LIMITS)
    finally:
        held.restore()


def gone(mark: str) -> bool:
    """Tell whether no process has `mark` as a word, waiting for those that are on their way out."""
    over = time.monotonic() + SAFETY / 10
    while time.monotonic() < over:
        found = [pid for pid in map(str, Path("/proc").glob("[0-9]*")) if _carries(pid, mark)]
        if not found:
            return True
        time.sleep(0.02)
    return False


def _carries(folder: str, mark: str) -> bool:
    try:
        said = Path(f"{folder}/cmdline").read_bytes()
    except OSError:
        return False
    return mark.encode() in said and pids.stat(int(folder.rpartition("/")[2])) is not None


DEAF = "env -i setsid sh -c 'trap \"\" INT TERM HUP; while :; do sleep 1; done; : '{} & echo ready; wait"


def test_nothing_inside_survives_the_death_of_bwrap(held: Cell) -> None:
    mark, known = f"deaf{held.mark}", list[Process]()

    def heard(data: bytes) -> None:
        if b"ready" in data:
            os.kill(known[0].pid, signal.SIGKILL)

    def act() -> int:
        mounts = jail.Mounts(tree=held.tree, access=Access.WRITE, home=held.home)
        command = DEAF.format(mark)
        ended = jail.jailed(rung, command, mounts, env={}, limits=cell.LIMITS, sink=heard, spawned=known.append)
        return ended.code

    rung = cell.rung_of(held.uid)
    assert cell.as_user(held.uid, act) == -signal.SIGKILL
    assert gone(mark)


RUNNER = """
import sys
from pathlib import Path
from relay.host import jail
from relay.terms import Limits
tree = Path(sys.argv[1])
rung, _ = jail.choose("required")
mounts = jail.Mounts(tree=tree, access=jail.Access.WRITE, home=tree.parent)
said = sys.stdout.buffer.raw
jail.jailed(rung, sys.argv[2], mounts, env={}, limits=Limits(seconds=600), sink=said.write)
"""


def test_nothing_inside_survives_the_death_of_relay(tmp_path: Path) -> None:
    cell.rung_of(os.geteuid())
    mark = f"orphan{os.urandom(6).hex()}"
    (tmp_path / "home/tree").mkdir(parents=True)
    command = [sys.executable, "-c", RUNNER, str(tmp_path / "home/tree"), DEAF.format(mark)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
        runner.kill()
    assert gone(mark)


def test_a_jail_lives_as_long_as_the_thread_that_waits_for_it(held: Cell) -> None:
    mounts, rung = jail.Mounts(tree=held.tree, access=Access.READ, home=held.home), cell.rung_of(held.uid)

    def act() -> list[str]:
        said: list[str] = []

        def run() -> None:
            said.append(jail.jailed(rung, "sleep 0.1; echo done", mounts, env={}, limits=cell.LIMITS).text)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return said

    assert cell.as_user(held.uid, act) == ["done\n"]


READ_KEY = "call({keyctl}, 11, {key}, b'x' * 64, 64)\n"


def test_a_key_of_the_session_does_not_come_along(held: Cell) -> None:
    numbers = seccomp.MACHINES[os.uname().machine].denied
    mounts, rung, python = held.mounts(Access.READ), cell.rung_of(held.uid), cell.python_of(held.uid)

    def act() -> tuple[int, str]:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall(numbers["keyctl"], 1, None)  # a session keyring of its own
        key = libc.syscall(numbers["add_key"], b"user", b"relay", b"secret", 6, -3)
        script = attacks.python(READ_KEY.format(keyctl=numbers["keyctl"], key=key))
        return key, jail.jailed(rung, [python, "-c", script], mounts, env={}, limits=cell.LIMITS).text

    key, said = cell.in_child(held.uid, act)
    if key < 0:
        pytest.skip("this kernel keeps no keys")
    assert said == "refused EPERM\n"


def test_processes_outside_do_not_count(held: Cell) -> None:
    user = held.uid if os.geteuid() == 0 else None
    outside = [subprocess.Popen(["sleep", "300"], user=user) for _ in range(BOUNDS.processes)]
    try:
        ended, _ = held.run(
            "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 0.05 & done; wait; echo all", Access.READ
        )
    finally:
        for each in outside:
            each.kill()
            each.wait()
    assert ended.text == "all\n"


TYPES = """
import fcntl, os, termios
for where in (0, '/dev/tty'):
    try:
        fd = where if where == 0 else os.open(where, os.O_RDWR)
        fcntl.ioctl(fd, termios.TIOCSTI, b'x')
        print('TYPED')
    except OSError as error:
        print('refused', error.errno)
"""


def test_nothing_is_typed_into_the_terminal_of_whoever_runs_it(held: Cell) -> None:
    rung = cell.rung_of(held.uid)
    mounts, words = held.mounts(Access.READ), [cell.python_of(held.uid), "-c", TYPES]
    with bwrap.built(rung.program, mounts, BOUNDS, bwrap.Asked()) as built:
        pid, terminal = pty.fork()
        if pid == 0:
            for number in built.fds:
                os.set_inheritable(number, True)  # noqa: FBT003  it takes no names
            if held.uid != os.geteuid():
                os.setuid(held.uid)
            os.write(built._gate, b"x")  # noqa: SLF001  it may begin at once
            os.execve(rung.program, [*built.words, *words], {"PATH": os.environ["PATH"]})  # noqa: S606  as Relay would
        said = b""
        try:
            while data := os.read(terminal, 4096):
                said += data
        except OSError:  # how a terminal ends
            pass
        os.waitpid(pid, 0)
        os.close(terminal)
    assert said.split().count(b"refused") == 2
    assert b"TYPED" not in said


@pytest.mark.parametrize(
    "place", ["$MAIN", "$H", "$H/.ssh", "/", "/run", "/dev", "$COMMON", "$COMMON/relay", "$OTHER/..", "$H/.."]
)
def test_a_write_to_what_is_not_there_fails_and_does_not_vanish(held: Cell, place: str) -> None:
    ended, wrong = held.run(f"mkdir -p {place} && echo x > {place}/new && echo WROTE", Access.WRITE)
    assert "WROTE" not in ended.text
    assert "Read-only file system" in ended.text
    assert wrong == []


def test_the_ledger_is_an_empty_folder(held: Cell) -> None:
    ended, _ = held.run("ls -A $COMMON/relay | wc -l; ls $COMMON/objects | wc -l", Access.READ)
    ledger, objects = map(int, ended.text.split())
    assert (ledger, objects > 0) == (0, True)


def test_the_copy_for_a_scratch_shares_no_file_with_the_tree_and_is_removed(held: Cell) -> None:
    listed = set(held.tree.parent.iterdir())
    ended, wrong = held.run("echo x >> a.py; chmod 700 sub; cat a.py", Access.SCRATCH)
    assert ended.text == "a = 1\nx\n"
    assert wrong == []
    assert set(held.tree.parent.iterdir()) == listed


def test_what_is_laid_over_the_tree_is_bounded_too(held: Cell) -> None:
    if not cell.rung_of(held.uid).overlay:
        pytest.skip("this bubblewrap lays nothing over a folder; the copy is bounded by another test")
    ended, _ = held.run("head -c 40M /dev/zero > big; sleep 30", Access.SCRATCH, limits=Limits(seconds=10))
    assert ended.ended == "disk"


def test_a_jail_that_cannot_be_built_is_no_failure_of_the_command(held: Cell) -> None:
    rung, mounts = cell.rung_of(held.uid), held.mounts(Access.READ)
    with (
        mock.patch.object(bwrap, "HOME", "/proc/no/home"),
        pytest.raises(RelayError, match="could not be built") as caught,
    ):
        jail.jailed(rung, ["true"], mounts, env={}, limits=cell.LIMITS)
    assert caught.value.exit_code is Exit.HUMAN


def test_no_descriptor_of_relay_is_open_inside(held: Cell) -> None:
    ended, _ = held.run("ls /proc/self/fd | wc -l", Access.WRITE)
    assert ended.text == "4\n"  # three, and the folder that is being listed


def test_limits_of_the_kernel_are_set_inside(held: Cell) -> None:
    ended, _ = held.run("prlimit --noheadings -o HARD --core --fsize --nproc", Access.READ)
    assert ended.text.split() == ["0", str(BOUNDS.file), str(BOUNDS.processes)]
