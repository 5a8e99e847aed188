"""A person's home with everything in it that an attacker wants, and an oracle that says what an attack did to it.

What the attack itself says is never believed: the home is compared before and after, sockets tell whether somebody
came, and secrets are looked for in what was said.
"""

import hashlib
import os
import pickle
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar
from unittest import mock

import pytest

from relay.host import jail, pids, proc, repository, worktree
from relay.host.jail import rungs
from relay.host.jail.mounts import Access, Mounts
from relay.terms import Limits
from tests.host.jail.beacons import Beacons
from tests.world import World

T = TypeVar("T")

ORDINARY = 31337
"""A user that exists nowhere: the kernel needs no entry, and nothing of anybody's is near."""
LIMITS = Limits(seconds=20)
BOUNDS = jail.Bounds(memory=400 << 20, processes=64, file=48 << 20, tmp=16 << 20, disk=24 << 20)
USERS = ("root", "user")
TREE = {"a.py": "a = 1\n", "sub/b.py": "b = 1\n", ".gitignore": "*.log\n"}

_DIED = pickle.dumps((False, "the child died"))
_SECRET_FILES = (
    *(".ssh/id_ed25519", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".git-credentials", ".npmrc"),
    *(".docker/config.json", "project/.env", "project/.git/relay/runs/x/legs/01-implement/transcript.jsonl"),
    *("project/.git/relay/lock", "project/.git/config.worktree", "trees/01.io/reply.json"),
)


def as_user(uid: int, act: Callable[[], T]) -> T:
    """Call `act` as a user; another one needs root."""
    return act() if uid == os.geteuid() else in_child(uid, act)


def in_child(uid: int, act: Callable[[], T]) -> T:
    """Call `act` in a child that has everything imported already, and return what it returned."""
    answer, tell = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of pytest-xdist: the child uses none of them
        pid = os.fork()
    if pid == 0:
        try:
            os.close(answer)
            if uid != os.geteuid():
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            result: object = (True, act())
        except BaseException:  # noqa: BLE001  it is told to the parent
            result = (False, traceback.format_exc())
        with os.fdopen(tell, "wb") as stream:
            stream.write(pickle.dumps(result))
        os._exit(0)
    os.close(tell)
    with os.fdopen(answer, "rb") as stream:
        done, value = pickle.loads(stream.read() or _DIED)  # noqa: S301  our own child's
    os.waitpid(pid, 0)
    assert done, value
    return value  # type: ignore[no-any-return]


@cache
def rung_of(uid: int) -> rungs.Rung:
    """Return the jail that holds for this user; the test is skipped aloud where none does."""
    if uid != os.geteuid() and os.geteuid() != 0:
        pytest.skip("only root can also be an ordinary user")

    def probed() -> rungs.Rung | rungs.Cause:
        rungs.probe.cache_clear()
        return rungs.probe()

    found = as_user(uid, probed)
    if not isinstance(found, rungs.Rung):
        pytest.skip(f"no jail holds here: {found.cause}")
    return found


def uid_of(user: str) -> int:
    """Return the number of `root`, or of an ordinary user: this one, if it is one."""
    if user == "root":
        if os.geteuid() != 0:
            pytest.skip("this is not root")
        return 0
    return os.geteuid() or ORDINARY


def python_of(uid: int) -> str:
    """Return a Python that the user may run: the one that runs the tests may lie in root's home."""
    if uid == os.geteuid():
        return sys.executable
    found = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
    if found is None:
        pytest.skip("there is no Python that an ordinary user may run")
    return found


def state(top: Path, leave: Path | None, timeless: Path | None = None) -> dict[str, tuple[object, ...]]:
    """Return mode, owner, links, time, attributes and content of everything below `top`, but not below `leave`.

    Of `leave` itself only its kind counts, and its `.git`; `timeless` is a folder whose time does not count.
    """
    found: dict[str, tuple[object, ...]] = {}
    waiting = [top]
    while waiting:
        path = waiting.pop()
        stated = path.lstat()
        kind = stat.S_IFMT(stated.st_mode)
        if path == leave:
            found[str(path)] = (kind,)
            waiting += [path / ".git"] if os.path.lexists(path / ".git") else []
            continue
        content: object = None
        if stat.S_ISREG(kind):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        elif stat.S_ISLNK(kind):
            content = path.readlink()
        elif stat.S_ISDIR(kind):
            waiting += list(path.iterdir())
        when = None if path == timeless else stated.st_mtime_ns
        names = os.listxattr(path, follow_symlinks=False)
        extra = tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in names)
        found[str(path)] = (stated.st_mode, stated.st_uid, stated.st_gid, stated.st_nlink, when, extra, content)
    return found


class Cell:
    """A home, a project with a ledger, two worktrees, secrets everywhere, and who looks after them."""

    def __init__(self, uid: int, base: Path) -> None:
        self.uid, self.base, self.home = uid, base, base / "home"
        self.secret, self.mark = (f"{word}{secrets.token_hex(12)}" for word in ("SECRET", "mark"))
        self.home.mkdir()
        world = World(self.home, TREE)
        self.repo = repository.discover(world.root)
        self.main, self.common = world.root, self.repo.common
        head = world.git("rev-parse", "HEAD")
        self.lease = worktree.lease(self.repo, self.home / "trees/01", head, "run=x")
        self.other = worktree.lease(self.repo, self.home / "trees/02", head, "run=x").path
        self.tree = self.lease.path
        (self.home / ".bashrc").write_text("# mine\n", encoding="utf-8")
        for name in _SECRET_FILES:
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"[x]\n\ttoken = {self.secret}\n", encoding="utf-8")
        world.git("config", "remote.origin.url", f"https://{self.secret}@example.org/x.git")
        self.beacons = Beacons(self.home)
        for path in (base, *base.rglob("*")):
            os.chown(path, uid, uid, follow_symlinks=False)
        self._pristine = state(self.tree, None)
        self._before: dict[Path | None, dict[str, tuple[object, ...]]] = {}

    def mounts(self, access: Access) -> Mounts:
        """Return what an agent's command sees."""
        tools = jail.readable(python_of(self.uid).rpartition("/")[0], self.home) if self.uid == os.geteuid() else ()
        return jail.around(self.repo, self.lease, access, home=self.home, readable=tools)

    def names(self, victim: int) -> dict[str, str]:
        """Return what an attacker may know: everything."""
        tcp, six, udp = (each.getsockname()[1] for each in (self.beacons.tcp, self.beacons.six, self.beacons.udp))
        return {
            "H": str(self.home),
            "MAIN": str(self.main),
            "COMMON": str(self.common),
            "WT": str(self.tree),
            "GD": str(self.lease.git_dir),
            "OTHER": str(self.other),
            "MARK": self.mark,
            "TCP": str(tcp),
            "SIX": str(six),
            "UDP": str(udp),
            "ABSTRACT": self.beacons.abstract.getsockname()[1:].decode(),
            "VICTIM": str(victim),
            "PY": python_of(self.uid),
        }

    def run(
        self, command: str | list[str], access: Access, *, rung: rungs.Rung | None = None, limits: Limits = LIMITS
    ) -> tuple[proc.Ended, list[str]]:
        """Run a command jailed, and return how it ended and all that it did which it should not."""
        leave = self.tree if access is Access.WRITE else None
        before = self._before.setdefault(leave, state(self.home, leave, self.tree.parent))
        rung, mounts = rung or rung_of(self.uid), self.mounts(access)
        with self.victim() as victim:
            names = self.names(victim.pid)

            def act() -> proc.Ended:
                with mock.patch.dict(os.environ, {"API_KEY": self.secret, "HOME": str(self.home)}):
                    return jail.jailed(rung, command, mounts, env=names, limits=limits, bounds=BOUNDS)

            ended = as_user(self.uid, act)
            wrong = [] if victim.poll() is None else ["it ended a process outside"]
        after = state(self.home, leave, self.tree.parent)
        wrong += [f"it changed {name}" for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
        wrong += self.beacons.touched()
        wrong += ["it told a secret"] if self.secret in ended.text else []
        return ended, wrong + self._traces()

    def _traces(self) -> list[str]:
        """Return what is left of it on the machine: files with the mark in their name, processes with it as a word."""
        found = []
        for place in ("/", "/tmp", "/var/tmp", "/dev/shm", "/run", "/etc", "/usr/local/bin", "/opt", "/dev"):  # noqa: S108
            with suppress(OSError):
                found += [f"it left {path}" for path in Path(place).iterdir() if self.mark in path.name]
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if self.mark.encode() in (folder / "cmdline").read_bytes() and pids.stat(int(folder.name)):
                    found.append(f"process {folder.name} outlived it")
        return found

    @contextmanager
    def victim(self) -> Iterator[subprocess.Popen[bytes]]:
        """Yield a process of the same user, with a secret in its environment."""
        user = self.uid if os.geteuid() == 0 else None
        env = {"API_KEY": self.secret, "PATH": os.defpath}
        with subprocess.Popen(
            ["sleep", "300"], env=env, user=user, group=user, extra_groups=[] if user else None
        ) as it:
            try:
                yield it
            finally:
                it.kill()

    def restore(self) -> None:
        """Put the worktree's files back as they were, if they are not."""
        if state(self.tree, None) == self._pristine:
            return
        for path in self.tree.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for name, text in TREE.items():
            (self.tree / name).parent.mkdir(exist_ok=True)
            (self.tree / name).write_text(text, encoding="utf-8")
        for path in (self.tree, *self.tree.rglob("*")):
            os.chown(path, self.uid, self.uid, follow_symlinks=False)
        self.refresh()

    def refresh(self) -> None:
        """Take what is there now for what was there before."""
        self._pristine = state(self.tree, None)
        self._before.clear()


@contextmanager
def built(user: str) -> Iterator[Cell]:
    """Yield a fresh home of `root` or an ordinary `user`, in a folder that both may enter."""
    uid = uid_of(user)
    base = Path(tempfile.mkdtemp(prefix="relay-cell-")).resolve()
    base.chmod(0o755)
    cell = Cell(uid, base)
    try:
        yield cell
    finally:
        for each in cell.beacons.all():
            each.close()
        shutil.rmtree(base)
