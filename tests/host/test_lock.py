"""Locks: one holder, named, and free the moment it is dead."""

import fcntl
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from relay.errors import Exit, RelayError
from relay.host import clock, lock, proc
from tests.world import CHECKOUT, SAFETY

NOBODY = 65534

_HOLDER = """
import subprocess, sys
from pathlib import Path
from relay.host import lock
with lock.hold(Path(sys.argv[1]), "relay run", "261129-0230-fix-login"):
    if len(sys.argv) > 2:
        subprocess.Popen(["sleep", "300"], start_new_session=True)
    print("held", flush=True)
    sys.stdin.read()
"""


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@contextmanager
def another_holds(path: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Let another process hold the lock at `path` inside a `with` block."""
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT), "RELAY_NONCE": f"held {path}"},
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
        if child.poll() is None:
            child.communicate(timeout=SAFETY)


def test_who_holds_it_stands_beside_it_for_as_long(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert lock.holder(path) is None
    with clock.fix(datetime(2026, 11, 29, 2, 30, tzinfo=UTC)), lock.hold(path, "relay run", "r1"):
        found = lock.holder(path)
        assert found == lock.Holder(process=proc.this(), since="2026-11-29T02:30:00Z", what="relay run", run="r1")
    assert lock.holder(path) is None
    assert names(tmp_path) == ["lock"]


def test_a_lock_is_taken_again_after_it_was_given_back(tmp_path: Path) -> None:
    for _ in range(3):
        with lock.hold(tmp_path / "lock", "relay run"):
            assert lock.holder(tmp_path / "lock")


def test_a_taken_lock_is_refused_at_once_and_says_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with another_holds(path) as child:
        with pytest.raises(RelayError) as caught, lock.hold(path, "relay resume"):
            pytest.fail("two hold it")
        found = lock.holder(path)
    assert caught.value.exit_code is Exit.HELD
    assert f"process {child.pid}, since " in caught.value.message
    assert "run `261129-0230-fix-login`" in caught.value.message
    assert "relay stop 261129-0230-fix-login" in caught.value.hint
    assert found is not None
    assert found.process.pid == child.pid


def test_the_same_process_does_not_get_it_twice(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock.hold(path, "outer"):
        with pytest.raises(RelayError, match="`outer` already holds"), lock.hold(path, "inner"):
            pytest.fail("two hold it")
        assert lock.holder(path)


def test_a_holder_without_a_name_is_still_a_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock.hold(path, "relay run"):
        (tmp_path / "lock.json").write_text("{torn")
        with pytest.raises(RelayError, match="another process holds") as caught, lock.hold(path, "relay run"):
            pytest.fail("two hold it")
    assert caught.value.exit_code is Exit.HELD


def test_a_glance_at_a_lock_keeps_nobody_from_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as glance:
        fcntl.flock(glance, fcntl.LOCK_SH)
        over = threading.Timer(0.05, fcntl.flock, (glance, fcntl.LOCK_UN))
        over.start()
        with lock.hold(path, "relay run"):
            assert lock.holder(path) is not None
        over.join()


def test_a_killed_holder_leaves_it_free_though_its_agent_lives(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with another_holds(path, "with an agent") as child:
        child.kill()
        child.wait(SAFETY)
        agents = proc.survivors(f"held {path}")
        assert len(agents) == 1
        assert (tmp_path / "lock.json").exists()
        assert lock.holder(path) is None
        with lock.hold(path, "relay resume"):
            assert lock.holder(path)
        proc.end(agents)


def test_a_lock_file_deleted_while_it_is_held_does_not_make_two_holders(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with another_holds(path) as child:
        path.unlink()
        with pytest.raises(RelayError, match=f"process {child.pid}"), lock.hold(path, "relay run"):
            pytest.fail("two hold it")
        assert lock.holder(path), "the record of the real holder is gone"


@pytest.mark.parametrize("record", [b"", b"\xff", b"[]", b'{"process": {"pid": 1}}', b"null"])
def test_a_record_that_names_nobody_is_nobody(tmp_path: Path, record: bytes) -> None:
    (tmp_path / "lock.json").write_bytes(record)
    assert lock.holder(tmp_path / "lock") is None
    with lock.hold(tmp_path / "lock", "relay run"):
        assert lock.holder(tmp_path / "lock")


def test_an_exception_gives_it_back(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), lock.hold(tmp_path / "lock", "relay run"):
        raise KeyboardInterrupt
    assert names(tmp_path) == ["lock"]
    with lock.hold(tmp_path / "lock", "relay run"):
        assert lock.holder(tmp_path / "lock")


def test_something_else_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(RelayError, match="cannot lock") as caught, lock.hold(tmp_path / "lock", "relay run"):
        pytest.fail("a folder was locked")
    assert caught.value.exit_code is Exit.HUMAN


def test_a_lock_of_another_user_names_the_owner() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = Path(name)
        folder.chmod(0o755)
        with lock.hold(folder / "lock", "relay run"):
            pass
        (folder / "lock").chmod(0)
        user = os.geteuid()
        if user == 0:
            os.seteuid(NOBODY)
        try:
            with pytest.raises(RelayError, match="belongs to `") as caught, lock.hold(folder / "lock", "relay run"):
                pytest.fail("somebody else's lock was taken")
        finally:
            os.seteuid(user)
    assert "chown" in caught.value.hint


def test_asking_who_holds_it_does_not_import_filelock(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom relay.host import lock\n"
        f"lock.holder(Path({str(tmp_path / 'lock')!r}))\n"
        "print([name for name in ('filelock', 'git', 'subprocess') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=SAFETY,
    )
    assert done.stdout == "[]\n"
