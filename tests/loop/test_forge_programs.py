"""Proposals by the programs that have the person's login: `gh`, the real one where it is installed, and `glab`."""

import os
import shutil
from pathlib import Path

import pytest

from tests.forge import TOKEN, Hub, lined_up, programs
from tests.forge.lab import Lab
from tests.loop.faults import stopped, through
from tests.world import FIXED, World

GH, GLAB = shutil.which("gh"), shutil.which("glab")
"""The real ones, found before the tests get an environment of their own."""


def accepted(world: World, **ship: object) -> None:
    """Run until accepted."""
    world.save(phases=["implement"], ship={"method": "pr", **ship})
    world.git("push", "-q", "origin", "main")
    through(world.inside("run", world.spec()))


def outcomes(world: World) -> list[str]:
    """Return what became of each shipment."""
    return [receipt["effect"]["outcome"] for receipt in world.receipts() if receipt["act"] == "ship"]


def without(name: str, folder: Path) -> str:
    """Return a PATH on which a program is not: where it lies, links to all that lies beside it take the place."""
    found = []
    for number, place in enumerate(map(Path, os.environ["PATH"].split(os.pathsep))):
        if (place / name).exists():
            links = folder / f"links-{number}"
            links.mkdir()
            for path in place.iterdir():
                if path.name != name:
                    (links / path.name).symlink_to(path)
            place = links  # noqa: PLW2901 - as said
        found.append(str(place))
    return os.pathsep.join(found)


def test_a_gh_that_is_there_is_asked_and_needs_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, away = lined_up(tmp_path, method="pr")
    with Hub(away) as hub:
        made = programs.write(tmp_path / "bin", "gh", hub.url)
        monkeypatch.setenv("PATH", f"{made.parent}:{os.environ['PATH']}")
        accepted(world)
        before = away.branches()
        (tmp_path / "bin" / "gh.out").touch()
        stopped(world.inside("approve"), 4, "gh auth login")
        assert away.branches() == before
        (tmp_path / "bin" / "gh.out").unlink()
        through(world.inside("approve", world.only_run()))
        hub.merge()
        through(world.inside("status"))
    assert outcomes(world) == ["failed", "proposed", "shipped"]
    asked = (tmp_path / "bin" / "gh.log").read_text().splitlines()
    assert "POST repos/acme/shop/pulls" in asked
    assert asked[-1] == "GET repos/acme/shop/pulls/1"


@pytest.mark.skipif(GH is None, reason="gh is not installed")
def test_the_real_gh_opens_one_closes_it_and_follows_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`github.localhost` is the one name that gh asks without TLS; a proxy leads it to the hub."""
    monkeypatch.setenv("PATH", f"{Path(GH or '').parent}:{os.environ['PATH']}")
    world, away = lined_up(tmp_path, method="pr")
    away.on_a_forge("http://github.localhost/acme/shop.git")
    with Hub(away) as hub:
        monkeypatch.setenv("http_proxy", hub.url)
        monkeypatch.setenv("GH_ENTERPRISE_TOKEN", TOKEN)
        monkeypatch.setenv("GH_TOKEN", TOKEN)
        accepted(world, auto_merge="rebase")
        hub.fails("POST /pulls", 403)
        stopped(world.inside("approve"), 4, "forbids it", "Resource not accessible")
        hub.mended()
        run = world.only_run()
        through(world.inside("approve", run))
        assert [(pull.title, pull.auto) for pull in hub.pulls] == [("Make add add", "REBASE")]
        through(world.inside("reject", run, "--why", "say why in a comment"))
        assert [(pull.state, pull.auto) for pull in hub.pulls] == [("closed", None)]
        world.implementer({"calc.py": FIXED + "# since people pay\n"})
        through(world.inside("resume"))
        through(world.inside("approve", run))
        hub.merge(2)
        through(world.inside("status"))
    assert outcomes(world) == ["failed", "proposed", "withdrawn", "proposed", "shipped"]


def test_glab_opens_a_merge_request_and_follows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, away = lined_up(tmp_path, method="pr")
    away.on_a_forge("git@gitlab.example.org:acme/tools/shop.git")
    with Lab(away) as lab:
        made = programs.write(tmp_path / "bin", "glab", lab.url)
        monkeypatch.setenv("PATH", without("glab", tmp_path))
        accepted(world, auto_merge="squash")
        stopped(world.inside("approve"), 4, "`glab`, which is not here", "install glab")
        monkeypatch.setenv("PATH", f"{made.parent}:{os.environ['PATH']}")
        through(world.inside("approve", world.only_run()))
        [request] = lab.pulls
        assert (request.title, request.base, request.auto) == ("Make add add", "main", "pipeline")
        assert world.receipts()[-1]["effect"]["url"].endswith("/merge_requests/1")
        lab.merge()
        through(world.inside("status"))
    assert outcomes(world) == ["failed", "proposed", "shipped"]
    assert away.git("show", "main:calc.py") + "\n" == FIXED


@pytest.mark.skipif(GLAB is None, reason="glab is not installed")
def test_the_real_glab_opens_one_closes_it_and_follows_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that the person's settings of glab lead to the hub, without TLS. Measured with glab 1.53."""
    monkeypatch.setenv("PATH", f"{Path(GLAB or '').parent}:{os.environ['PATH']}")
    world, away = lined_up(tmp_path, method="pr")
    away.on_a_forge("git@gitlab.example.org:acme/tools/shop.git")
    with Lab(away) as lab:
        logged_in(lab.url.removeprefix("http://"))
        accepted(world, auto_merge="squash")
        lab.refuses = 403
        stopped(world.inside("approve"), 4, "GitLab answered 403 for acme/tools/shop", "403 Forbidden")
        lab.refuses = 0
        run = world.only_run()
        through(world.inside("approve", run))
        assert [(request.state, request.auto) for request in lab.pulls] == [("open", "pipeline")]
        through(world.inside("reject", run, "--why", "say why in a comment"))
        assert [(request.state, request.auto) for request in lab.pulls] == [("closed", None)]
        world.implementer({"calc.py": FIXED + "# since people pay\n"})
        through(world.inside("resume"))
        through(world.inside("approve", run))
        lab.merge(2)
        through(world.inside("status"))
    assert outcomes(world) == ["failed", "proposed", "withdrawn", "proposed", "shipped"]
    assert away.git("show", "main:calc.py") + "\n" == FIXED + "# since people pay\n"


def logged_in(address: str) -> None:
    """Write the settings that `glab auth login` leaves behind."""
    path = Path(os.environ["XDG_CONFIG_HOME"], "glab-cli", "config.yml")
    path.parent.mkdir()
    path.write_text(
        f"hosts:\n  gitlab.example.org:\n    api_protocol: http\n    api_host: {address}\n    token: {TOKEN}\n"
    )
    path.chmod(0o600)
