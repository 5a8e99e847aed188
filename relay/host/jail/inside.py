"""The first program in a jail that has a door: it opens ports there, hands them out, and becomes the command.

Relay accepts on these ports from outside, so nothing of Relay stays inside. Started by its path with `-I -S`, as
`inside.py SOCKET ADDRESS:PORT ... -- COMMAND ...`; it knows nothing of the package. Exit codes as a shell's: 127 when
there is no such command, 126 when it cannot be started or there is no way out.
"""

import os
import signal
import socket
import sys


def hand_out(place: str, ports: list[str]) -> None:
    """Open the ports and give them to who listens at `place`; `OSError` when that fails."""
    servers = []
    for port in ports:
        address, _, number = port.rpartition(":")
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        servers.append(socket.create_server((address, int(number)), family=family, backlog=128))
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(place)
        socket.send_fds(link, [b"\0"], [server.fileno() for server in servers])
        if not link.recv(1):  # until then the process that sent them must live, so that it can be watched
            raise ConnectionAbortedError(0, "the door is closed")


def main(words: list[str]) -> int:
    """Become the command behind `--`; return an exit code when that cannot be."""
    end = words.index("--")
    command, what, missing = words[end + 1 :], "no way out of the jail", 126
    try:
        hand_out(words[0], words[1:end])
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what is ignored stays so
            signal.signal(number, signal.SIG_DFL)
        what, missing = f"cannot start `{command[0]}`", 127
        os.execvp(command[0], command)  # noqa: S606  as it was given
    except OSError as error:
        os.write(2, f"relay: {what}: {str(error.strerror).lower()}\n".encode(errors="replace"))
        return missing if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
