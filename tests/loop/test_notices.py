"""Notices: a person is told once of each event, with run, verdict, cost and the next command; none stops a run."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from relay import notify
from relay.host import files, repository
from relay.record import ledger as ledgers
from tests.forge import TOKEN
from tests.forge.desk import Desk
from tests.loop.faults import sober, stopped, through
from tests.world import FIXED, World


class Wanted:
    """The person's own config.toml, and what the command that stands in it was given."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "notices.txt"
        self.command = f'{{ echo "== $RELAY_EVENT $RELAY_RUN"; echo "$RELAY_NEXT"; cat; }} >> {self._log}'

    def write(self, **table: object) -> None:
        """Write it."""
        path = files.config_home() / "relay" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(tomli_w.dumps({"notify": {"command": self.command, **table}}))

    @property
    def text(self) -> str:
        """Everything that the command was given."""
        return self._log.read_text() if self._log.exists() else ""

    @property
    def events(self) -> list[str]:
        """The events, in their order."""
        return [line.split()[1] for line in self.text.splitlines() if line.startswith("== ")]


@pytest.fixture
def wanted(tmp_path: Path) -> Wanted:
    made = Wanted(tmp_path)
    made.write()
    return made


def test_who_is_to_approve_and_who_waits_for_it_are_told_once_with_the_exact_next_command(
    world: World, wanted: Wanted
) -> None:
    through(world.inside("run", world.spec()))
    run = world.only_run()
    assert wanted.events == ["approval"]
    assert f"relay: Make add add - approval\n\nrun: {run}\nverdict: approve, 1/1 criteria\ncost: " in wanted.text
    assert f"next: relay -C {world.root} approve {run}\n" in wanted.text
    through(world.inside("resume", run))
    assert wanted.events == ["approval"], "the same event is not told twice"
    through(world.inside("approve", run))
    through(world.inside("approve", run))
    assert wanted.events == ["approval", "shipped"]


def test_a_question_a_breach_and_a_failure_are_events_of_their_own(tmp_path: Path, wanted: Wanted) -> None:
    world = World.simple(tmp_path / "asks", phases=["implement"])
    world.script("asks", {"reply": {"status": "blocked", "question": "Why?"}}, phase="implement", vendor="north")
    world.phases["implement"]["agent"] = "asks"
    world.save(phases=["implement"])
    stopped(world.inside("run", world.spec()), 4)
    run = world.only_run()
    stopped(world.inside("resume", run), 4)
    assert f"relay -C {world.root} answer {run} TEXT" in wanted.text

    world = World.simple(tmp_path / "breaks", phases=["implement"])
    world.shell("implementer", "git config user.name Mallory", phase="implement", reply="exit")
    world.save(phases=["implement"])
    stopped(world.inside("run", world.spec()), 7)

    world = World.simple(tmp_path / "sleeps", phases=["implement"])
    world.shell("implementer", "sleep 600", phase="implement", reply="exit")
    world.phases["implement"]["minutes"] = 0.01
    world.save(phases=["implement"])
    stopped(world.inside("run", world.spec()), 5)
    assert wanted.events == ["needs-human", "breach", "failed"]


def test_a_budget_that_is_used_up_is_told_with_the_command_that_goes_on(tmp_path: Path, wanted: Wanted) -> None:
    world = World.simple(tmp_path / "w", phases=["implement"], budget={"minutes": 0.02})
    world.python("implementer", "import time; time.sleep(60)\n", phase="implement", vendor="north")
    stopped(world.inside("run", world.spec()), 4)
    world.implementer({"calc.py": FIXED})
    [told] = [line for line in wanted.text.splitlines() if line.startswith("next: ") and "--minutes" in line]
    through(world.inside(*told.removeprefix("next: relay ").split(), folder=tmp_path))


def test_a_proposal_that_a_person_has_to_merge_is_told_with_the_reason(
    tmp_path: Path, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "*")
    desk = Desk(tmp_path / "desk", auto_merge="squash")
    desk.hub.auto_allowed = False
    with desk.hub:
        through(desk.accepted().world.inside("approve"))
    assert wanted.events == ["approval", "proposed"]
    assert "shop/pull/1: a person has to merge it there: Auto merge is not allowed" in wanted.text


def test_a_login_that_expired_is_an_event_of_its_own_and_told_once(tmp_path: Path, wanted: Wanted) -> None:
    world = World.simple(tmp_path / "w", phases=["implement"])
    expired = {"ended_by": "auth", "problem": "log in again"}
    world.script("away", expired, expired, phase="implement", vendor="north")
    world.save(phases=["implement"])
    stopped(world.inside("run", world.spec()), 5)
    run = world.only_run()
    assert wanted.events == ["login-expired"]
    assert f"relay: Make add add - login-expired\n\nrun: {run}\n" in wanted.text
    assert f"next: relay -C {world.root} resume {run}\n" in wanted.text
    through(world.inside("status"))
    assert wanted.events == ["login-expired"]
    stopped(world.inside("resume", run), 5)
    assert wanted.events == ["login-expired"] * 2, "the second leg that found no login is an event again"


def test_a_shipment_that_failed_is_told_with_its_reason(world: World, wanted: Wanted) -> None:
    through(world.inside("run", world.spec()))
    world.write({"calc.py": "# half a thought\n"})
    stopped(world.inside("approve"), 4)
    assert wanted.events == ["approval", "needs-human"]
    assert "cannot go along" in wanted.text


def test_only_the_events_that_are_wanted_are_told(world: World, wanted: Wanted) -> None:
    wanted.write(events=["shipped"])
    through(world.inside("run", world.spec()))
    through(world.inside("approve"))
    assert wanted.events == ["shipped"]


@pytest.mark.parametrize(
    ("command", "why"), [("echo the bell is broken; exit 3", "exited 3: the bell is broken"), ("nobody-rings", "127")]
)
def test_a_notice_that_cannot_be_sent_is_logged_and_stops_nothing(
    world: World, wanted: Wanted, command: str, why: str
) -> None:
    wanted.write(command=command)
    ran = world.inside("run", world.spec())
    through(ran)
    assert why in ran.err
    log = (world.root / ".git" / "relay" / "notices" / "log").read_text()
    assert f"{world.only_run()} approval: `notify.command`" in log
    assert why in log
    through(world.inside("approve"))


def test_a_config_that_cannot_be_read_stops_no_run_that_has_begun(world: World, wanted: Wanted) -> None:
    sober(world.inside("run", world.spec(), "--until", "review"))
    wanted.write(events=["birthday"])
    ran = world.inside("resume")
    through(ran)
    assert "birthday" in ran.err


def test_whoever_else_has_news_tells_it_once_by_its_key(world: World, wanted: Wanted) -> None:
    through(world.inside("run", world.spec()))
    here = ledgers.at(repository.discover(world.root))
    alert = notify.Notice(
        event="alert", key="reaper.lost-lock", run="", title="a lock that nobody holds", next="relay reap"
    )
    assert [notify.send(here, alert) for _ in range(3)] == ["sent", "needless", "needless"]
    assert wanted.events.count("alert") == 1


class Hook:
    """A webhook on this machine: `/slow` answers a letter at a time, and never to the end."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.programs: list[str] = []
        self.closed = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.programs = [_read(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
                hook.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                with suppress(OSError):
                    while self.path.startswith("/slow") and not hook.closed.wait(0.2):
                        self.wfile.write(b"H")
                    self.send_response(500 if self.path.startswith("/broken") else 200)
                    self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]


def _read(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    monkeypatch.setenv("NO_PROXY", "*")
    made = Hook()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield made
    made.closed.set()
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def test_a_webhook_gets_the_words_and_an_address_that_nobody_understands_is_logged_without_its_secret(
    world: World, wanted: Wanted, hook: Hook
) -> None:
    pytest.importorskip("apprise", reason="the extra `notify` is not installed")
    wanted.write(urls=[f"json://127.0.0.1:{hook.port}/", "nothing-like-it://a-secret-word-here/"])
    ran = world.relay("run", world.spec())
    through(ran)
    [got] = hook.got
    assert got["title"] == "relay: Make add add - approval"
    assert f"next: relay -C {world.root} approve {world.only_run()}" in got["message"]
    assert "`nothing-like-it://...`" in ran.err
    assert "a-secret-word-here" not in ran.err + (world.root / ".git" / "relay" / "notices" / "log").read_text()
    assert wanted.events == ["approval"], "one that fails is no reason not to ring the others"


def test_an_address_stands_in_no_list_of_processes(world: World, wanted: Wanted, hook: Hook) -> None:
    pytest.importorskip("apprise", reason="the extra `notify` is not installed")
    wanted.write(urls=[f"json://127.0.0.1:{hook.port}/a-secret-word-here/"])
    through(world.inside("run", world.spec()))
    assert len(hook.got) == 1
    assert [program for program in hook.programs if "ring.py" in program]
    assert not [program for program in hook.programs if "a-secret-word-here" in program]


def test_a_service_that_trickles_holds_up_neither_the_run_nor_the_other_addresses(
    world: World, wanted: Wanted, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("apprise", reason="the extra `notify` is not installed")
    monkeypatch.setattr(notify, "SECONDS", 6.0)
    wanted.write(urls=[f"json://127.0.0.1:{hook.port}/{name}/" for name in ("slow", "broken", "quick")])
    ran = world.inside("run", world.spec())
    through(ran)
    assert "`json://...` did not take it within 6 s" in ran.err
    assert "`json://...` did not take it\n" in ran.err
    assert ran.err.count("a notice was not sent") == 2
    assert len(hook.got) == 3
    log = (world.root / ".git" / "relay" / "notices" / "log").read_text()
    assert "within 6 s" in log
