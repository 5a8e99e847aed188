"""The command line of bubblewrap: deny by default, as measured in sandbox.md sections 2 and 4.

No `--clearenv`: bwrap's own process keeps the environment it was started with, and a program inside can read it. So
the environment is clean before bwrap gets it.
"""

import os
import re
import resource
import select
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from glob import glob
from pathlib import Path
from typing import Final, NamedTuple

from relay.host import pids
from relay.host.jail import seccomp
from relay.host.jail.limits import Bounds
from relay.host.jail.mounts import Access, Mounts
from relay.terms import Process

HOME: Final = "/tmp/home"  # noqa: S108  inside, where /tmp is the program's own
TMP: Final = "/tmp"  # noqa: S108
_PASSING: Final = (TMP, "/var/tmp")  # noqa: S108
_SYSTEM: Final = ("/usr", "/opt", "/bin", "/sbin", "/lib*", "/nix", "/snap")
_PROC: Final = ("sys", "sysrq-trigger", "irq", "bus", "fs", "driver", "mtrr", "scsi", "acpi")
"""What root could write in /proc without any capability, since root owns it (sandbox.md 4.3)."""
_ETC: Final = (
    *("passwd", "group", "nsswitch.conf", "hosts", "resolv.conf", "services", "localtime", "mime.types", "fonts"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs"),
    *("pki/ca-trust/extracted", "pki/tls/openssl.cnf", "crypto-policies", "java-*"),
)
"""What root sees of /etc, which for root holds the shadow of every password."""
_SMALL: Final = 16 << 20
_MOMENT: Final = 0.05


class Asked(NamedTuple):
    """What changes from one command to the next, beside what is seen."""

    copies: Mapping[Path, Path] = {}
    network: bool = False
    nests: bool = False
    binds: Sequence[tuple[str, str]] = ()


class _Files(NamedTuple):
    """The numbers of the files that a command line names."""

    seccomp: int
    status: int
    gate: int
    data: Mapping[Path, int]


class Built:
    """A command line with the files that it names by number, and what bwrap says about itself.

    bwrap waits with the command until `enter`.
    """

    def __init__(self, words: list[str], fds: tuple[int, ...], status: int, gate: int) -> None:
        self.words, self.fds = words, fds
        self._status, self._gate, self._said, self._inside = status, gate, b"", -1

    def _read(self) -> bytes:
        with suppress(BlockingIOError):
            while data := os.read(self._status, 4096):
                self._said += data
        return self._said

    @property
    def first(self) -> int:
        """The number, outside, of the first process inside; 0 as long as there is none."""
        found = re.search(rb'"child-pid": (\d+)', self._read())
        return int(found[1]) if found else 0

    @property
    def ran(self) -> bool:
        """Tell, after the end, whether the program was started: else the jail could not be built."""
        return b'"exit-code"' in self._read()

    def enter(self, process: Process, group: Path | None) -> None:
        """Let the command begin, in a control group if there is one: the two processes so far are all there are."""
        with suppress(ProcessLookupError):  # it died: the end will say why
            while not self.first:
                if not select.select([self._status], [], [], _MOMENT)[0] and not pids.alive(process):
                    return
            with suppress(AttributeError, OSError):
                self._inside = os.pidfd_open(self.first)
            if group is not None:
                for number in (process.pid, self.first):
                    group.write_text(str(number), encoding="ascii")
        os.write(self._gate, b"x")

    def gone(self, seconds: float) -> bool:
        """Wait for the end of the first process inside, and tell whether it came: all others end with it."""
        return self._inside >= 0 and bool(select.select([self._inside], [], [], seconds)[0])

    def close(self) -> None:
        """Forget the first process inside."""
        if self._inside >= 0:
            os.close(self._inside)


@contextmanager
def built(program: str, mounts: Mounts, bounds: Bounds, asked: Asked) -> Iterator[Built]:
    """Open what the command line needs, and close it at the end."""
    with ExitStack() as stack:

        def kept(*descriptors: int) -> tuple[int, ...]:
            for descriptor in descriptors:
                stack.callback(os.close, descriptor)
            return descriptors

        def memory(content: bytes) -> int:
            (descriptor,) = kept(os.memfd_create("relay"))
            os.write(descriptor, content)
            os.lseek(descriptor, 0, os.SEEK_SET)
            return descriptor

        status, told = kept(*os.pipe())
        waits, gate = kept(*os.pipe())
        os.set_blocking(status, False)
        data = {path: memory(content) for path, content in mounts.replaced.items()}
        files = _Files(memory(seccomp.program()), told, waits, data)
        words = _arguments(program, mounts, bounds, asked, files)
        jail = Built(words, (files.seccomp, told, waits, *data.values()), status, gate)
        stack.callback(jail.close)
        yield jail


def _arguments(program: str, mounts: Mounts, bounds: Bounds, asked: Asked, files: _Files) -> list[str]:
    """Return the command line up to where the confined program's own begins."""
    shells = _shells(mounts)
    return [
        *(program, "--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--die-with-parent"),
        *([] if asked.nests else ["--disable-userns"]),
        *("--new-session", "--hostname", "relay", "--seccomp", str(files.seccomp)),
        *("--json-status-fd", str(files.status), "--block-fd", str(files.gate)),
        *(["--share-net"] if asked.network else []),
        *_system(root=os.geteuid() == 0),
        *_tmpfs("/dev/shm", bounds.tmp),  # noqa: S108
        *(word for place in _PASSING for word in _tmpfs(place, bounds.tmp)),
        *(*_tmpfs("/run", _SMALL), "--symlink", "/run", "/var/run", "--dir", HOME, *_names(network=asked.network)),
        *(word for place in shells for word in _tmpfs(place, _SMALL)),
        *_ro(asked.binds),
        *_ro((str(path), str(path)) for path in mounts.readable),
        *(word for path in mounts.masked for word in _tmpfs(str(path), 4096)),
        *(
            word
            for path, number in files.data.items()
            for word in ("--perms", "0444", "--ro-bind-data", str(number), str(path))
        ),
        *(word for path in mounts.writable for word in ("--bind", str(path), str(path))),
        *_tree(mounts, asked.copies),
        *_ro(((str(path), str(path)) for path in mounts.pinned), must=True),
        # Else a write to what is not there would succeed, into memory, and vanish: now it is refused.
        *(
            word
            for place in ("/dev", "/run", *map(str, mounts.masked), *shells, "/")
            for word in ("--remount-ro", place)
        ),
        *("--chdir", str(mounts.tree), "--", "prlimit", *_prlimit(bounds), "--"),
    ]


@cache
def _system(*, root: bool) -> tuple[str, ...]:
    """Return what belongs to nobody: programs, libraries, and of /etc what root may show."""
    words = []
    for pattern in _SYSTEM:
        for path in sorted(glob(pattern)):
            words += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    shown = (path for name in _ETC for path in sorted(glob(f"/etc/{name}"))) if root else ("/etc",)
    written = _PROC if root else _PROC[:1]
    return (
        *(*words, *_ro((path, path) for path in shown)),
        *("--proc", "/proc", *_ro((f"/proc/{name}", f"/proc/{name}") for name in written), "--dev", "/dev"),
    )


def _names(*, network: bool) -> list[str]:
    """Return where names of hosts are looked up, where that is a link into /run, which is empty inside."""
    real = os.path.realpath("/etc/resolv.conf")
    return ["--ro-bind-try", real, real] if network and not real.startswith("/etc/") else []


def _ro(pairs: Iterable[tuple[str, str]], *, must: bool = False) -> list[str]:
    option = "--ro-bind" if must else "--ro-bind-try"
    return [word for source, place in pairs for word in (option, source, place)]


def _tmpfs(place: str, size: int) -> list[str]:
    return ["--size", str(size), "--perms", "1777" if size > _SMALL else "0755", "--tmpfs", place]


def _shells(mounts: Mounts) -> list[str]:
    """Return the folders that are empty, and closed at the end: the home, and what holds a mount below /tmp."""
    found: dict[str, None] = {}
    for path in (mounts.tree, *mounts.readable, *mounts.writable, mounts.home):
        for place in _PASSING:
            if path.is_relative_to(place) and len(path.relative_to(place).parts) > 1:
                found[f"{place}/{path.relative_to(place).parts[0]}"] = None
    if not any(Path(name.rstrip("*")).is_relative_to(mounts.home) for name in (*_SYSTEM, "/etc", "/proc", "/dev", TMP)):
        found[str(mounts.home)] = None
    return list(found)


def _tree(mounts: Mounts, copies: Mapping[Path, Path]) -> list[str]:
    tree = str(mounts.tree)
    if mounts.access is Access.READ:
        return ["--ro-bind", tree, tree]
    if mounts.access is Access.WRITE:
        return ["--bind", tree, tree]
    words = []
    for place in (mounts.tree, *mounts.fleeting):
        over = ["--bind", str(copies[place])] if copies else ["--overlay-src", str(place), "--tmp-overlay"]
        words += [*over, str(place)]
    return words


def _prlimit(bounds: Bounds) -> list[str]:
    """Return limits that the kernel holds for each process; none can be raised above the person's own."""
    wanted = (
        ("nproc", resource.RLIMIT_NPROC, bounds.processes),  # counted for this jail alone, as it is set inside
        ("fsize", resource.RLIMIT_FSIZE, bounds.file),
        ("core", resource.RLIMIT_CORE, 0),
    )
    words = []
    for name, number, value in wanted:
        hard = resource.getrlimit(number)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        words.append(f"--{name}={limit}:{limit}")
    return words
