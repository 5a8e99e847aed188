"""What is installed is whole: the wheel runs far from the checkout, and a checkout runs without being built.

The dependencies are those of the environment that runs the tests, lent by a `.pth` file; so nothing is downloaded, and
nothing but Relay itself is installed. Relay does not come along: a `.pth` file inside a lent folder is not read.
"""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.world import CHECKOUT


def _files(*folders: str) -> set[str]:
    """Name all files of the checkout below some folders, without what Python compiled there."""
    paths = (path for folder in folders for path in (CHECKOUT / folder).rglob("*") if path.is_file())
    return {path.relative_to(CHECKOUT).as_posix() for path in paths if path.parent.name != "__pycache__"}


DATA = sorted(_files("pages", "phases", "prompts"))
READ = "import sys\nfrom relay.record import catalog\nsys.stdout.buffer.write(catalog.builtin(*sys.argv[1:]))"


def _call(*command: str | Path, folder: Path, timeout: float = 120) -> bytes:
    """Run a program with nothing but a PATH and a home, and return its standard output."""
    folder.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "PIP_NO_INDEX": "1"}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=env, capture_output=True, check=False, timeout=timeout
    )
    assert done.returncode == 0, f"{command}\n{done.stdout.decode()}\n{done.stderr.decode()}"
    return done.stdout


def _environment(folder: Path, *install: str | Path) -> Path:
    """Make an environment that has the lent dependencies and what `pip install` is told; return its bin folder."""
    _call(sys.executable, "-m", "venv", "--without-pip", folder, folder=folder.parent)
    [packages] = folder.glob("lib/python*/site-packages")
    lent = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (packages / "lent.pth").write_text("".join(f"{path}\n" for path in lent), encoding="utf-8")
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "-q", "--no-deps")
    _call(*pip, "--no-build-isolation", *install, folder=folder.parent)
    return folder / "bin"


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution from the checkout."""
    out = tmp_path_factory.mktemp("sdist")
    _call(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", out, folder=CHECKOUT)
    [built] = out.glob("*.tar.gz")
    return built


@pytest.fixture(scope="module")
def source(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the source distribution: a checkout without git."""
    folder = tmp_path_factory.mktemp("source")
    _call("tar", "-xzf", sdist, folder=folder)
    [top] = folder.iterdir()
    return top


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the source distribution, as an installer would."""
    out = tmp_path_factory.mktemp("wheel")
    _call(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, folder=source)
    [built] = out.glob("*.whl")
    return built


def test_the_source_distribution_has_all_that_the_tests_need(source: Path) -> None:
    needed = {*DATA, "README.md", "LICENSE", "CHANGELOG.md", "relay.toml", ".ci/run", "tests/world.py", "relay/cli.py"}
    there = {path.relative_to(source).as_posix() for path in source.rglob("*")}
    assert needed - there == set()
    assert os.access(source / ".ci" / "run", os.X_OK)


def test_the_wheel_carries_phases_and_prompts_as_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if name.startswith("relay/_builtin/")} == {f"relay/_builtin/{name}" for name in DATA}
    assert {name.split("/")[0].split("-")[0] for name in names} == {"relay", "phased_relay"}
    assert _files("relay") - names == set()


def test_the_installed_wheel_runs_the_demo_far_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    scripts = _environment(tmp_path / "env", wheel)
    where = _call(scripts / "python", "-c", "import relay; print(relay.__file__)", folder=tmp_path / "far").decode()
    assert Path(where).is_relative_to(tmp_path / "env")
    for name in DATA:
        kind, file = name.split("/")
        read = _call(scripts / "python", "-c", READ, kind, file, folder=tmp_path / "far")
        assert read == (CHECKOUT / name).read_bytes()
    version = _call(scripts / "phased-relay", "--version", folder=tmp_path / "far")
    assert version.split()[-1].decode() == wheel.name.split("-")[1]
    assert _call(scripts / "relay", "demo", folder=tmp_path / "far")


def test_an_editable_checkout_reads_the_phases_that_stand_in_it(source: Path, tmp_path: Path) -> None:
    scripts = _environment(tmp_path / "env", "-e", source)
    phase = source / "phases" / "review.toml"
    before = phase.read_bytes()
    phase.write_bytes(before + b"# edited\n")
    try:
        read = _call(scripts / "python", "-c", READ, "phases", "review.toml", folder=tmp_path / "far")
    finally:
        phase.write_bytes(before)
    assert read == before + b"# edited\n"
