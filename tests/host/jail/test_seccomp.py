"""The filter, run by a small machine that reads it as the kernel does: so that each architecture is tested here."""

import struct

import pytest

from relay.host.jail import seccomp

ALLOW, EPERM, KILL = 0x7FFF0000, 0x00050001, 0x80000000
READ = {"x86_64": 0, "aarch64": 63}
MACHINES = pytest.mark.parametrize("machine", seccomp.MACHINES)
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06


def answer(machine: str, call: int, first: int = 0, arch: int | None = None) -> int:
    """Return what the filter says to a system call."""
    data = struct.pack("=IIQ6Q", call, seccomp.MACHINES[machine].arch if arch is None else arch, 0, first, *[0] * 5)
    program = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    at, value = 0, 0
    while True:
        code, yes, no, k = program[at]
        at += 1
        if code == RETURN:
            return int(k)
        if code == LOAD:
            (value,) = struct.unpack_from("=I", data, k)
        else:
            at += yes if (value == k if code == EQUAL else value >= k) else no


@MACHINES
def test_what_no_build_needs_is_refused(machine: str) -> None:
    denied = seccomp.MACHINES[machine].denied
    assert {name: answer(machine, number) for name, number in denied.items()} == dict.fromkeys(denied, EPERM)


@MACHINES
def test_an_ordinary_call_is_allowed(machine: str) -> None:
    assert answer(machine, READ[machine]) == ALLOW


@MACHINES
@pytest.mark.parametrize(
    ("family", "said"),
    [(1, ALLOW), (2, ALLOW), (10, ALLOW), (16, ALLOW), (40, EPERM), (38, EPERM), (17, EPERM), (0, EPERM), (99, EPERM)],
)
def test_a_socket_is_of_a_family_that_tests_use(machine: str, family: int, said: int) -> None:
    assert [answer(machine, call, family) for call in seccomp.MACHINES[machine].socket] == [said, said]


@MACHINES
def test_only_the_lower_half_of_the_family_counts_as_for_the_kernel(machine: str) -> None:
    assert answer(machine, seccomp.MACHINES[machine].socket[0], (1 << 32) | 40) == EPERM


@MACHINES
def test_another_instruction_set_ends_the_program(machine: str) -> None:
    assert answer(machine, READ[machine], arch=0x40000003) == KILL


def test_the_numbers_of_x32_are_no_way_around() -> None:
    assert answer("x86_64", 0x40000000 | seccomp.MACHINES["x86_64"].denied["keyctl"]) == EPERM
    assert answer("x86_64", 0xFFFFFFFF) == EPERM


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(KeyError):
        seccomp.program("riscv64")
