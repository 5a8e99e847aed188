"""One running program: fed and read at the same time, in one thread, until it and everything it started has ended.

One selector does it, so neither input nor output can block the other (pitfalls row 102). Ending goes by a ladder:
SIGINT, SIGTERM, SIGKILL to the group, then the whole session and whatever carries the same `RELAY_NONCE`, also after
the program ended by itself. A process that leaves the session and empties its environment is the jail's part.
"""

import os
import selectors
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final, Literal, NamedTuple

from relay.host import clock, kept, pids, signals
from relay.terms import Limits, Process

if TYPE_CHECKING:
    import subprocess

How = Literal["exit", "timeout", "idle", "output", "memory", "disk"]

_CHUNK: Final = 64 << 10
_TICK: Final = 0.05
_LOOK: Final = 0.25
"""Seconds between two looks of a guard: a process that fills memory is seen before the machine suffers."""
_LADDER: Final = ((signal.SIGINT, 2.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0))
_LINGER: Final = 0.25
"""Seconds for a reader such as `>(tee log)` to finish, and again to obey SIGTERM, once the program itself has ended."""


class Guard(NamedTuple):
    """What somebody adds who confines a program: files that it inherits, and a look at it now and then.

    `look` is given the program's number; what it returns, if anything, is the ending. `gone` waits for so many seconds
    until nothing of the program is left, and tells whether it is so. `harmless` says that it can change nothing that
    Relay reads twice.
    """

    look: Callable[[int], How | None]
    fds: tuple[int, ...] = ()
    gone: Callable[[float], bool] = lambda _: False
    harmless: bool = False


@contextmanager
def _heard() -> Iterator[None]:
    """Start a program that hears SIGINT and SIGTERM though Relay was started deaf to them, by `nohup` or `&`.

    A handler is not inherited, while being ignored is; so for this moment Relay's is one that does nothing.
    """
    deaf = [number for number, _ in _LADDER[:2] if signal.getsignal(number) is signal.SIG_IGN]
    try:
        with suppress(ValueError):  # only the main thread may
            for number in deaf:
                signal.signal(number, lambda *_: None)
        yield
    finally:
        with suppress(ValueError):
            for number in deaf:
                signal.signal(number, signal.SIG_IGN)


class Program:
    """One program: its pipes, its limits, and the means to end it with everything it started."""

    def __init__(
        self,
        limits: Limits,
        sink: Callable[[bytes], None] | None,
        stdin: bytes,
        nonce: str,
        guard: Guard | None = None,
    ) -> None:
        self.fault: Exception | None = None
        self.said = kept.Kept(limits.keep)
        self.began = self._heard = clock.monotonic()
        self._limits, self._sink, self._stdin, self._nonce = limits, sink, memoryview(stdin), nonce
        self._guard, self._looked = guard, self.began
        self._child: subprocess.Popen[bytes] | None = None
        self._selector = selectors.DefaultSelector()
        self._pid = self._exit_fd = -1
        self._started = 0  # what is older is not its child

    def start(self, command: Sequence[str], cwd: str, env: Mapping[str, str]) -> Process:
        """Start it in a session of its own, without a terminal; `OSError` or `ValueError` when that fails."""
        import subprocess  # 8 ms that a command which runs nothing does not need

        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # inherited; every exit code would be read as 0
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with signals.held(), _heard():
            self._child = child = subprocess.Popen(
                command,
                cwd=cwd,
                env={**env, "RELAY_NONCE": self._nonce, "RELAY_RUNNER": pids.signature()},
                stdin=subprocess.PIPE if self._stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
                pass_fds=self._guard.fds if self._guard else (),
            )
        for pipe, event, act in (
            (child.stdout, selectors.EVENT_READ, self._read),
            (child.stdin, selectors.EVENT_WRITE, self._feed),
        ):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, event, act)
        with suppress(AttributeError, OSError):  # without it the end is noticed a tick later
            self._exit_fd = os.pidfd_open(child.pid)
            self._selector.register(self._exit_fd, selectors.EVENT_READ, self._notice)
        self._pid = child.pid
        process = pids.process(child.pid)
        self._started = process.started
        return process

    def watch(self) -> How:
        """Feed and read until the program ends by itself, crosses a limit, or the sink fails."""
        limits = self._limits
        while not self._over():
            now = clock.monotonic()
            if now >= self.began + limits.seconds:
                return "timeout"
            if limits.idle is not None and now >= self._heard + limits.idle:
                return "idle"
            if self.fault is not None or self._flooded():
                return "output"
            if self._guard and now >= self._looked + _LOOK:
                self._looked = now
                if seen := self._guard.look(self._pid):
                    return seen
            self._pump(_TICK)
        return "exit"

    def end(self) -> int:
        """End what still runs of it, read the rest of what it said, and return its exit code. Never raises."""
        child = self._child
        if child is None:  # it never started, or a signal came while it was being started
            pids.end(pids.survivors(self._nonce))
        else:
            if self._over():
                self._until(lambda: not self._open(), _LINGER)
            for signum, grace in _LADDER:
                if self._over():
                    break
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signum)
                self._until(self._over, grace)
            if self._guard is None or not self._guard.gone(_LINGER):
                self._sweep(child.pid)
            self._until(lambda: not self._open(), _LINGER)
        code = child.poll() if child is not None and self._over() else None
        self._close()
        return -signal.SIGKILL if code is None else code

    def _sweep(self, group: int) -> None:
        """End whatever the program left behind. It is not reaped yet, so its number is nobody else's."""
        known: dict[int, int] = {}
        began = clock.monotonic()
        while (left := self._left(group, known)) and clock.monotonic() < began + pids.STUBBORN:
            if clock.monotonic() < began + _LINGER:
                pids.signal_all(left.keys() - known.keys(), signal.SIGTERM)
            else:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)  # all at once: nothing can fork its way out
                pids.signal_all(left, signal.SIGKILL)
            known |= left
            self._pump(_TICK)

    def _left(self, group: int, known: Mapping[int, int]) -> dict[int, int]:
        """Return what lives of the tree, as number and start; one that is dying shows no environment any more."""
        mark = f"RELAY_NONCE={self._nonce}".encode()
        found = ((pid, stat) for pid in pids.others() if (stat := pids.stat(pid)) and stat.started >= self._started)
        return {
            pid: stat.started
            for pid, stat in found
            if known.get(pid) == stat.started or group in {stat.group, stat.session} or pids.carries(pid, mark)
        }

    def _flooded(self) -> bool:
        return self._limits.output is not None and self.said.total > self._limits.output

    def _over(self) -> bool:
        """Tell whether it has ended, without reaping it: as long as it is not reaped its group id stays its own."""
        child = self._child
        if child is None or child.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _open(self) -> bool:
        return self._child is not None and self._child.stdout is not None and not self._child.stdout.closed

    def _until(self, done: Callable[[], bool], seconds: float) -> None:
        over = clock.monotonic() + seconds
        while not done() and (left := over - clock.monotonic()) > 0:
            self._pump(min(left, _TICK))

    def _pump(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            key.data(key.fileobj)

    def _read(self, pipe: IO[bytes]) -> None:
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._shut(pipe)
            return
        self._heard = clock.monotonic()
        self.said.add(data)
        if self._sink is not None:
            try:
                self._sink(data)
            except Exception as error:  # noqa: BLE001  raised by `run` once the program has been ended
                self.fault, self._sink = error, None

    def _feed(self, pipe: IO[bytes]) -> None:
        try:
            self._stdin = self._stdin[os.write(pipe.fileno(), self._stdin[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want to hear the rest, which is its right
            self._stdin = self._stdin[:0]
        if not self._stdin:
            self._shut(pipe)

    def _notice(self, descriptor: int) -> None:
        """Stop watching for an end that has come, so that it does not keep the selector busy."""
        self._selector.unregister(descriptor)

    def _shut(self, pipe: IO[bytes]) -> None:
        self._selector.unregister(pipe)
        pipe.close()

    def _close(self) -> None:
        self._selector.close()
        for pipe in (self._child.stdin, self._child.stdout) if self._child else ():
            if pipe is not None:
                pipe.close()
        if self._exit_fd >= 0:
            os.close(self._exit_fd)
