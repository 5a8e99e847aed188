"""The system calls that a jailed program does not get: a filter for the kernel, put together here without a library.

Namespaces do not cover keyrings, vsock and io_uring (sandbox.md section 3); the rest is attack surface that no build
or test needs. A refused call fails with EPERM, so that programs fall back; a foreign instruction set ends the program.
"""

import platform
import struct
from typing import Final, NamedTuple

_ALLOW: Final = 0x7FFF0000
_EPERM: Final = 0x00050000 | 1
_KILL: Final = 0x80000000
_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN: Final = 0x06

_NUMBER, _ARCH, _FIRST = 0, 4, 16  # offsets in struct seccomp_data; both machines are little-endian
_X32: Final = 0x40000000
_SOCKETS: Final = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
"""The families that may be asked for; vsock, packet, alg, bluetooth and whatever comes later may not."""


class Machine(NamedTuple):
    """How a machine numbers its calls; `socket` holds those that make one socket and two."""

    arch: int
    x32: bool
    socket: tuple[int, int]
    denied: dict[str, int]


_DENIED: Final = """
    add_key         248 217    kexec_load        246 104    io_uring_setup    425 425
    request_key     249 218    kexec_file_load   320 294    io_uring_enter    426 426
    keyctl          250 219    init_module       175 105    io_uring_register 427 427
    bpf             321 280    finit_module      313 273    open_tree         428 428
    perf_event_open 298 241    delete_module     176 106    move_mount        429 429
    userfaultfd     323 282    open_by_handle_at 304 265    fsopen            430 430
    setns           308 268    fanotify_init     300 262    fsconfig          431 431
    syslog          103 116    mount_setattr     442 442    fsmount           432 432
""".split()  # noqa: SIM905  a table
"""Calls with their numbers on x86_64 and on aarch64."""


def _denied(column: int) -> dict[str, int]:
    return {name: int(number) for name, number in zip(_DENIED[::3], _DENIED[column::3], strict=True)}


MACHINES: Final = {
    "x86_64": Machine(arch=0xC000003E, x32=True, socket=(41, 53), denied=_denied(1) | {"modify_ldt": 154}),
    "aarch64": Machine(arch=0xC00000B7, x32=False, socket=(198, 199), denied=_denied(2)),
}


def program(machine: str = "") -> bytes:
    """Return the filter for a machine, by default this one, as the kernel reads it; `KeyError` for an unknown one."""
    here = MACHINES[machine or platform.machine()]
    checks = [(_AT_LEAST, _X32)] if here.x32 else []
    checks += [(_EQUAL, number) for number in here.denied.values()]
    families = list(_SOCKETS.values())
    # ... checks | socket? socketpair? | load the family | families | refuse | allow
    refuse = 4 + len(checks) + 2 + 1 + len(families)
    lines = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, here.arch), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    for code, value in checks:
        lines.append((code, refuse - len(lines) - 1, 0, value))
    lines += [(_EQUAL, 1, 0, here.socket[0]), (_EQUAL, 0, len(families) + 2, here.socket[1])]
    lines.append((_LOAD, 0, 0, _FIRST))
    for family in families:
        lines.append((_EQUAL, refuse - len(lines), 0, family))
    lines += [(_RETURN, 0, 0, _EPERM), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
