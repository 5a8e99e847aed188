"""Terminals of any size with Relay on them."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.world import CHECKOUT, SAFETY, World


def _size(terminal: int, width: int, height: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


def _env() -> dict[str, str]:
    """Return an environment in which the size of the terminal is what the terminal says."""
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    return {**kept, "PYTHONPATH": str(CHECKOUT), "TERM": "xterm-256color"}


def shown(world: World, *argv: str, width: int) -> str:
    """Return what a call of the command line shows on a terminal of so many columns."""
    master, slave = pty.openpty()
    _size(slave, width, 24)
    process = subprocess.Popen(
        [sys.executable, "-m", "relay", *argv],
        cwd=world.root,
        env=_env(),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    drawn = b""
    with suppress(OSError):  # so a terminal says that nobody has it open any more
        while data := os.read(master, 1 << 16):
            drawn += data
    os.close(master)
    assert process.wait(SAFETY) == 0, drawn
    return drawn.decode("utf-8", "replace").replace("\r\n", "\n")


def _drawn(found: re.Match[str]) -> str:
    """Keep of what moves the cursor only where a screen begins, as a line end, and what switches something on."""
    return "\n" if found[0] == "\x1b[H" else found[0] if found[0][-1] == "h" else ""


class Screen:
    """A terminal with `relay status --watch` on it."""

    def __init__(self, world: World, *flags: str, width: int = 160, height: int = 24) -> None:
        self.master, self.slave = pty.openpty()
        _size(self.slave, width, height)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "relay", "status", "--watch", *flags],
            cwd=world.root,
            env=_env(),
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
        )
        self.text = ""

    def until(self, wanted: Callable[[str], object]) -> str:
        """Read what is drawn until it shows what is wanted."""
        end = time.monotonic() + SAFETY
        os.set_blocking(self.master, False)
        while not wanted(self.text):
            assert time.monotonic() < end, self.text[-4000:]
            assert self.process.poll() is None, self.text[-4000:]
            try:
                drawn = os.read(self.master, 1 << 16).decode("utf-8", "replace")
            except BlockingIOError:
                time.sleep(0.05)
                continue
            self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", _drawn, drawn).replace("\r\n", "\n")
        return self.text

    def end(self) -> int:
        """Press Ctrl-C, and return how it exits."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(SAFETY)


@contextmanager
def watching(world: World, *flags: str, width: int = 160, height: int = 24) -> Iterator[Screen]:
    """Watch inside a block."""
    screen = Screen(world, *flags, width=width, height=height)
    try:
        yield screen
    finally:
        if screen.process.poll() is None:
            screen.process.kill()
            screen.process.wait()
        os.close(screen.master)
        os.close(screen.slave)
