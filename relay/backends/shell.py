"""Commands of an agent's tools, run in the leg's cell: what comes of them, short for the model and whole on disk."""

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from relay.backends.base import Lane
from relay.host import proc
from relay.host.jail import cell as cells
from relay.terms import Ask, Limits

SHOWN: Final = 30_000
"""Characters of a command's output that the model is shown: half from its beginning, half from its end."""
KEPT: Final = 1 << 20
"""Bytes of it that go into the transcript."""
MOST: Final = 64 << 20
"""Bytes that a command may say before it is ended."""
LONG: Final = 100 << 10
"""Bytes of a command or a pattern that is given as an argument: the system takes 128 KiB in one."""
_ALOUD: Final = 'relay_command=$(cat); exec </dev/null; eval "$relay_command"'
"""Runs a command that comes on standard input, which is empty for it, as it is for every other."""
FOUND: Final = 400
"""Characters of a line that a search shows."""


class Shell:
    """Runs commands in a leg's folder and cell, with what its environment says and no key of Relay's."""

    def __init__(self, ask: Ask, lane: Lane) -> None:
        self._folder, self._lane = Path(ask.folder), lane
        self._beside = Path(ask.reply_path).parent
        self._env = ask.env
        self._bash = shutil.which("bash") or "/bin/sh"
        self._rg = shutil.which("rg")

    def run(self, command: str, seconds: float) -> tuple[proc.Ended, str]:
        """Run a shell command; return how it ended, and what the model is shown of its output."""
        with tempfile.SpooledTemporaryFile(max_size=KEPT) as whole:

            def keep(piece: bytes) -> None:
                with suppress(OSError):  # a full disk is the command's trouble, not the leg's
                    whole.write(piece)

            given = command.encode()
            if len(given) <= LONG:
                ended = self._run([self._bash, "-c", command], seconds, keep)
            else:
                ended = self._run([self._bash, "-c", _ALOUD], seconds, keep, given)
            text = ended.text
            if len(text) <= SHOWN:
                return ended, text
            path = self._beside / f"output-{os.urandom(4).hex()}.txt"
            where = f"the whole is in `{path}`: use grep, or sed -n" if _keep(whole, path) else "the rest is lost"
        half, left_out = SHOWN // 2, len(text) - SHOWN + ended.dropped
        return ended, f"{text[:half]}\n[... {left_out} characters left out here; {where} ...]\n{text[-half:]}"

    def search(self, pattern: str, where: str, seconds: float) -> tuple[bool, str]:
        """Return whether a search ran, and its lines; what can run here is tried in turn, ripgrep first."""
        git = ["git", "-c", "core.fsmonitor=false", "--literal-pathspecs", "grep", "--untracked", "-nI", "--no-color"]
        ways = [[*git, "-P", "-e", pattern, "--", where], [*git, "-E", "-e", pattern, "--", where]]
        if self._rg:
            plain = [
                "--no-config",
                "--line-number",
                "--no-heading",
                "--with-filename",
                "--color=never",
                "--hidden",
                "--glob=!.git",
            ]
            ways.insert(0, [self._rg, *plain, "--sort=path", "-e", pattern, "--", where])
        ended = self._run(ways[0], seconds)
        for way in ways[1:]:
            if ended.ended != "exit" or ended.code in {0, 1}:
                break
            ended = self._run(way, seconds)
        lines = [line if len(line) <= FOUND else f"{line[:FOUND]}..." for line in ended.text.splitlines()]
        return ended.ended == "exit" and ended.code in {0, 1}, "\n".join(lines)

    def _run(
        self, argv: Sequence[str], seconds: float, sink: Callable[[bytes], None] | None = None, stdin: bytes = b""
    ) -> proc.Ended:
        return cells.run(
            self._lane.cell,
            argv,
            folder=self._folder,
            env=self._env,
            limits=Limits(seconds=seconds, keep=KEPT, output=MOST),
            stdin=stdin,
            sink=sink,
            spawned=self._lane.spawned,
        )


def _keep(whole: IO[bytes], path: Path) -> bool:
    """Write an output down beside the reply; False where the disk takes no more."""
    try:
        with path.open("xb") as stream:
            whole.seek(0)
            shutil.copyfileobj(whole, stream)
    except OSError:
        return False
    return True
