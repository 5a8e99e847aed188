"""The door of a jail, from inside: package managers go through, this machine's services stay closed but those named."""

import base64
import hashlib
import importlib.util
import io
import json
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from relay.errors import RelayError
from relay.host import jail
from relay.host.jail import network, proxy
from relay.terms import Limits
from tests.host.jail import doors
from tests.world import SAFETY

_NONE = doors.probe()
needs_jail = pytest.mark.skipif(bool(_NONE), reason=f"no jail here: {_NONE}")


@pytest.fixture
def index() -> Iterator[doors.Index]:
    with doors.index() as server:
        yield server


@pytest.fixture
def named(index: doors.Index, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the index as a host that has a name, and no other has one."""

    def lookup(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        if host != "packages.example":
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(proxy, "lookup", lookup)
    return f"packages.example:{index.server_port}"


def connects(where: object) -> str:
    """Return a program that says whether it could connect."""
    family = "AF_UNIX" if isinstance(where, str) else "AF_INET"
    return (
        f"import socket; link = socket.socket(socket.{family}); link.settimeout({SAFETY})\n"
        f"try: link.connect({where!r}); print('open')\n"
        "except OSError: print('closed')"
    )


def wheel() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("sample.py", "")
        file.writestr("sample-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n")
        file.writestr("sample-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("sample-1.0.dist-info/RECORD", "")
    return data.getvalue()


@needs_jail
@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this Python has no pip")
def test_pip_downloads_through_the_door_from_an_allowed_host_alone(
    tmp_path: Path, index: doors.Index, named: str
) -> None:
    data = wheel()
    index.pages |= {
        "/simple/sample/": b'<a href="/files/sample-1.0-py3-none-any.whl">sample</a>',
        "/files/sample-1.0-py3-none-any.whl": data,
    }
    (tmp_path / "in").mkdir()

    def pip(host: str) -> subprocess.CompletedProcess[str]:
        pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--retries", "0")
        where = ("--index-url", f"http://{host}/simple", "--trusted-host", host)
        with network.door("allow", (named,), (f"127.0.0.1:{index.server_port}",), tmp_path) as door:
            ended = doors.jailed(door, *pip, *where, "sample", folder=tmp_path / "in")
        said.extend(door.refused)
        return ended

    said: list[str] = []
    ended = pip(named)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "in/sample-1.0-py3-none-any.whl").read_bytes() == data
    assert said == []
    assert pip("elsewhere.example").returncode != 0
    assert said == ["`elsewhere.example:80` is not on the list of allowed hosts"]


@needs_jail
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_npm_installs_through_the_door(tmp_path: Path, index: doors.Index, named: str) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as file:
        manifest = b'{"name": "sample", "version": "1.0.0"}'
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(manifest)
        file.addfile(entry, io.BytesIO(manifest))
    sha512 = base64.b64encode(hashlib.sha512(data.getvalue()).digest()).decode()
    dist = {"tarball": f"http://{named}/sample-1.0.0.tgz", "integrity": f"sha512-{sha512}"}
    version = {"name": "sample", "version": "1.0.0", "dist": dist}
    about = {"name": "sample", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    index.pages |= {"/sample": json.dumps(about).encode(), "/sample-1.0.0.tgz": data.getvalue()}
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "package.json").write_text('{"name": "here", "version": "1.0.0"}')
    npm = ("npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--registry", f"http://{named}/")
    with network.door("allow", (named,), (f"127.0.0.1:{index.server_port}",), tmp_path) as door:
        ended = doors.jailed(door, *npm, "sample", folder=inside)
    assert ended.returncode == 0, ended.stderr
    assert (inside / "node_modules/sample/package.json").read_bytes() == manifest
    assert door.refused == ()


@needs_jail
def test_a_named_service_is_there_at_its_own_address_and_no_other_is(tmp_path: Path, index: doors.Index) -> None:
    (tmp_path / "in").mkdir()
    get = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{index.server_port}/').read())"
    with socket.create_server(("127.0.0.1", 0)) as other, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0relay-{tmp_path}")
        abstract.listen()
        for setting in ("off", "allow"):
            with network.door(setting, ("packages.example",), (f"localhost:{index.server_port}",), tmp_path) as door:
                assert "hello" in doors.python(door, get, tmp_path / "in")
                assert doors.python(door, connects(other.getsockname()), tmp_path / "in") == "closed"
                assert doors.python(door, connects(f"\0relay-{tmp_path}"), tmp_path / "in") == "closed"
                assert doors.python(door, connects(("1.1.1.1", 443)), tmp_path / "in") == "closed"
        other.settimeout(0)
        with pytest.raises(BlockingIOError):
            other.accept()


@needs_jail
def test_the_proxy_does_not_lead_to_a_service_that_is_not_named(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        get = (
            "import urllib.request as r, urllib.error\n"
            f"request = r.Request('http://127.0.0.1:{port}/'); request.set_proxy('127.0.0.1:3128', 'http')\n"
            "try: r.build_opener(r.ProxyHandler({})).open(request)\n"
            "except urllib.error.HTTPError as error: print(error.code, error.read().decode())"
        )
        with network.door("allow", ("packages.example",), (), tmp_path) as door:
            said = doors.python(door, get, tmp_path / "in")
    assert said == f"403 relay: `127.0.0.1:{port}` is an address, and only names can be on the list"


@needs_jail
def test_a_command_ends_as_it_would_without_a_door(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    with network.door("allow", ("packages.example",), (), tmp_path) as door:
        assert doors.jailed(door, "sh", "-c", "exit 7", folder=inside).returncode == 7
        assert doors.jailed(door, "sh", "-c", "kill -9 $$", folder=inside).returncode == 128 + signal.SIGKILL
        assert doors.jailed(door, "no-such-command", folder=inside).returncode == 127
        assert doors.jailed(door, "sh", "-c", "kill -PIPE $$", folder=inside).returncode == 128 + signal.SIGPIPE


@needs_jail
def test_nothing_of_the_door_stays_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    code = "import os; print([name for name in os.listdir('/proc') if name.isdigit()], os.listdir('/proc/self/fd'))"
    with network.door("allow", ("packages.example",), (), tmp_path) as door:
        assert doors.python(door, code, tmp_path / "in") == "['1', '2'] ['0', '1', '2', '3']"


@needs_jail
def test_each_command_has_its_own_ports_and_gives_them_back(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with network.door("allow", ("packages.example",), (), tmp_path) as door:
        for _ in range(3):
            assert doors.python(door, connects(("127.0.0.1", 3128)), tmp_path / "in") == "open"
        jails = [thread for thread in threading.enumerate() if thread.name == "relay-door"]
        for thread in jails[1:]:  # the first one waits at the door
            thread.join(SAFETY)
            assert not thread.is_alive()


@needs_jail
def test_behind_a_closed_door_no_command_runs(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with network.door("allow", ("packages.example",), (), tmp_path) as door:
        proxy.Proxy.close(door._proxy)  # noqa: SLF001  as it is while the leg is being ended
        ended = doors.jailed(door, "touch", "ran", folder=tmp_path / "in")
    assert ended.returncode == 126
    assert ended.stderr.startswith("relay: no way out of the jail: ")
    assert not (tmp_path / "in/ran").exists()


@needs_jail
def test_a_folder_may_have_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40) / "in"
    folder.mkdir(parents=True)
    with network.door("allow", ("packages.example",), (), folder.parent) as door:
        assert doors.python(door, connects(("127.0.0.1", 3128)), folder) == "open"


@needs_jail
def test_the_jail_of_a_leg_takes_the_door(tmp_path: Path, index: doors.Index) -> None:
    rung, _ = jail.choose("required")
    tree, home = tmp_path.resolve() / "tree", tmp_path.resolve() / "home"
    tree.mkdir()
    home.mkdir()
    mounts = jail.Mounts(tree=tree, access=jail.Access.READ, home=home)
    code = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{index.server_port}/').read())"
    with network.door("off", (), (f"127.0.0.1:{index.server_port}",), tmp_path) as door:
        python = door.wrap(["true"])[0]
        ended = jail.jailed(
            rung, [python, "-I", "-c", code], mounts, env={}, network=door, limits=Limits(seconds=SAFETY)
        )
    assert (ended.code, ended.text) == (0, "b'<p>hello</p>'\n")


def test_off_is_nothing_at_all_and_host_is_everything(tmp_path: Path) -> None:
    with network.door("off", (), (), tmp_path) as off, network.door("host", (), ("127.0.0.1:5432",), tmp_path) as host:
        for door in (off, host):
            assert (door.mounts, door.env, door.wrap(["a", "b"])) == ((), {}, ["a", "b"])
        assert (off.share, host.share) == (False, True)
        assert list(tmp_path.iterdir()) == []


def test_a_service_on_the_proxys_own_port_is_no_quarrel(tmp_path: Path) -> None:
    with network.door("allow", ("packages.example",), ("127.0.0.1:3128",), tmp_path) as door:
        assert door.env["HTTPS_PROXY"] == door.env["https_proxy"] == "http://127.0.0.1:3129"
        assert door.wrap(["x"])[-4:] == ["127.0.0.1:3129", "127.0.0.1:3128", "--", "x"]


HOSTLESS = ("*", "http://packages.example", "packages.example/simple", "10.0.0.1", "a b", "", "a.b:99999")


@pytest.mark.parametrize("entry", HOSTLESS)
def test_what_is_no_host_cannot_be_allowed(entry: str, tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="no host that can be allowed"):
        network.door("allow", (entry,), (), tmp_path)


@pytest.mark.parametrize("entry", ["5432", "db:5432", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:x", "u@127.0.0.1:5432"])
def test_what_is_no_service_cannot_be_opened(entry: str, tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="no service that can be opened"):
        network.door("off", (), (entry,), tmp_path)


def test_a_setting_is_one_of_three(tmp_path: Path) -> None:
    with pytest.raises(RelayError, match="`on` is no network setting"):
        network.door("on", (), (), tmp_path)
