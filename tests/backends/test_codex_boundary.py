"""The real Codex in a jail of Relay's, and with the person's login: what it reaches, and what reaches it."""

import base64
import json
import os
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from relay.backends import codex as backend
from relay.backends import codex_login
from relay.errors import Exit, RelayError
from relay.host import jail
from relay.terms import Agent
from tests.backends import codex
from tests.backends.codex import BROKEN, DONE, FIXED, KEY, Leg, replied
from tests.service import Script, Usage, do, nonce

Opened = Callable[[Script], Leg]

CALL = "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 2)\""


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Return what opens a leg on a script."""
    with codex.opened(tmp_path, monkeypatch) as open_:
        yield open_


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the person's CODEX_HOME, which is empty."""
    folder = tmp_path / "codex-home"
    folder.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(folder))
    return folder


def token(ends: float, name: str) -> str:
    """Return a token as the service makes them, signed by nobody."""
    claims = {"exp": int(ends), "name": name, "https://api.openai.com/auth": {"chatgpt_account_id": "account"}}
    parts: tuple[dict[str, Any], ...] = ({"alg": "none"}, claims, {})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)


def login(ends: float) -> dict[str, Any]:
    """Return a login that ends then."""
    tokens = {"id_token": token(ends, "old"), "access_token": token(ends, "old"), "refresh_token": "renews-old"}
    return {
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": None,
        "tokens": {**tokens, "account_id": "account"},
        "last_refresh": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


# --- in a jail ------------------------------------------------------------------------------------------------------


def test_in_a_jail_the_program_reaches_its_service_and_its_shells_reach_nothing(opened: Opened) -> None:
    leg = opened(
        {
            "": [
                do.edit("calc.py", "    return a - b\n", "    return a + b\n"),
                do.run(lambda _: CALL.format(port=leg.service.url.rpartition(":")[2])),
                do.run("env; echo made > made.txt"),
                do.reply(DONE),
            ]
        }
    )
    asked = leg.ask()
    taken = leg.take(asked, cell=leg.cell(asked))
    assert replied(taken) == DONE
    assert (leg.tree / "calc.py").read_text() == FIXED
    assert (leg.tree / "made.txt").read_text() == "made\n"
    _, network, env = leg.results()
    assert "PermissionError" in network
    assert KEY not in env
    assert f"RELAY_NONCE={leg.nonce}" in env


def test_in_a_jail_there_are_no_other_walls_for_what_the_plan_opened(opened: Opened) -> None:
    leg = opened(
        {"": [do.run(lambda _: CALL.format(port=leg.service.url.rpartition(":")[2]) + " && echo in"), do.reply(DONE)]}
    )
    asked = leg.ask()
    cell = leg.cell(asked)
    opens = type(cell)(rung=cell.rung, mounts=cell.mounts, loopback=(*cell.loopback, "127.0.0.1:5432"))
    assert replied(leg.take(asked, cell=opens)) == DONE
    assert leg.results()[0].strip() == "in"


def test_in_a_jail_what_a_judge_writes_vanishes(opened: Opened) -> None:
    leg = opened(
        {"": [do.run("echo changed > calc.py && cat calc.py"), do.reply({"verdict": "approve", "nonce": nonce})]}
    )
    asked = leg.ask("judge", prompt=f"The nonce must be `{leg.nonce}`.")
    assert leg.take(asked, cell=leg.cell(asked, jail.Access.SCRATCH)).ended_by == "reply"
    assert leg.results()[0].strip() == "changed"
    assert (leg.tree / "calc.py").read_text() == BROKEN


def test_in_a_jail_a_session_goes_on_after_its_room_was_used_up(opened: Opened) -> None:
    full = Usage(input=200_000, cached=0, output=100)
    leg = opened({"room for this session is used up": [do.reply(DONE)], "": [do.run("sleep 60").but(usage=full)]})
    asked = leg.ask()
    taken = leg.take(asked, cell=leg.cell(asked))
    assert taken.ended_by == "handover", taken
    assert taken.usage.turns == 2


def test_a_leg_needs_its_own_folder_the_program_and_its_service(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE)]})
    needs = backend.needs(leg.ask())
    assert needs.hosts == (leg.service.url.removeprefix("http://"),)
    assert needs.writable == (leg.io / "codex",)
    assert not needs.nests
    (package,) = needs.readable
    assert (package / "bin" / "codex").is_file()


# --- who pays -------------------------------------------------------------------------------------------------------


def test_a_login_goes_to_the_service_and_a_key_beside_it_does_not(opened: Opened, home: Path) -> None:
    (home / "auth.json").write_text(json.dumps(login(time.time() + 86_400)))
    leg = opened({"": [do.run("env"), do.reply(DONE)]})
    taken = leg.take(leg.ask(billing="subscription", env={"OPENAI_API_KEY": KEY}))
    assert replied(taken) == DONE
    assert taken.billing == "subscription"
    sent = leg.service.requests[0].headers["authorization"].removeprefix("Bearer ")
    assert sent == json.loads((home / "auth.json").read_text())["tokens"]["access_token"]
    assert KEY not in leg.results()[0]
    assert not (home / "sessions").exists()


def test_in_a_jail_a_login_is_there_without_what_renews_it(opened: Opened, home: Path) -> None:
    (home / "auth.json").write_text(json.dumps(login(time.time() + 86_400)))
    leg = opened({"": [do.run("cat $(dirname $TMPDIR)/home/auth.json"), do.reply(DONE)]})
    asked = leg.ask(billing="subscription")
    assert replied(leg.take(asked, cell=leg.cell(asked))) == DONE
    assert json.loads(leg.results()[0])["tokens"]["refresh_token"] == ""
    assert json.loads((home / "auth.json").read_text())["tokens"]["refresh_token"] == "renews-old"  # noqa: S105


@pytest.fixture
def renewal(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Yield what was asked of a service that renews logins; the program is told where it is."""
    asked: list[bytes] = []

    class Renewing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])))
            new = token(time.time() + 864_000, "new")
            said = json.dumps({"id_token": new, "access_token": new, "refresh_token": "renews-new"}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Renewing) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("CODEX_REFRESH_TOKEN_URL_OVERRIDE", f"http://127.0.0.1:{server.server_address[1]}/renew")
        yield asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("where", ["open", "jail"])
def test_a_login_that_is_over_is_renewed_and_the_person_has_the_new_one(
    opened: Opened, home: Path, renewal: list[bytes], where: str
) -> None:
    (home / "auth.json").write_text(json.dumps(login(time.time() - 60)))
    leg = opened({"": [do.reply(DONE)]})
    name = "CODEX_REFRESH_TOKEN_URL_OVERRIDE"
    asked = leg.ask(billing="subscription", env={name: os.environ[name]})
    assert replied(leg.take(asked, cell=leg.cell(asked) if where == "jail" else None)) == DONE
    assert b"renews-old" in renewal[0]
    kept = json.loads((home / "auth.json").read_text())["tokens"]
    assert kept["refresh_token"] == "renews-new"  # noqa: S105
    sent = leg.service.requests[0].headers["authorization"].removeprefix("Bearer ")
    assert sent == kept["access_token"]


def agent(**more: Any) -> Agent:  # noqa: ANN401 - fields of an agent
    return Agent(name="codex", backend="codex", vendor="openai", **more)


def test_a_login_pays_before_a_key_that_happens_to_be_set(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "auth.json").write_text(json.dumps(login(time.time() + 86_400)))
    monkeypatch.setenv("CODEX_API_KEY", KEY)
    found = codex_login.payer(agent())
    assert (found.billing, found.env, found.hosts, found.lent) == ("subscription", {}, ("chatgpt.com",), True)
    asked = codex_login.payer(agent(billing="api"))
    assert (asked.billing, asked.env, asked.hosts) == ("api", {"CODEX_API_KEY": KEY}, ("api.openai.com",))


def test_a_key_that_codex_was_logged_in_with_is_billed_as_one(home: Path) -> None:
    (home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": KEY}))
    found = codex_login.payer(agent())
    assert (found.billing, found.env) == ("api", {"CODEX_API_KEY": KEY})
    assert backend.key(agent()) == "login of codex"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("line", "says", "key"),
    [
        ({}, "is not logged in and has no key", "not logged in"),
        ({"billing": "subscription"}, "nobody is logged in", "not logged in"),
        ({"key": "MY_KEY"}, "has no key in `MY_KEY`", "`MY_KEY` is not set"),
        ({"key": "MY_KEY", "base_url": "http://127.0.0.1:9/v1"}, "has no key in `MY_KEY`", "`MY_KEY` is not set"),
    ],
)
def test_nobody_who_pays_is_said_before_anything_starts(line: dict[str, Any], says: str, key: str) -> None:
    with pytest.raises(RelayError, match=says) as caught:
        codex_login.payer(agent(**line))
    assert caught.value.exit_code is Exit.HUMAN
    assert caught.value.hint
    assert backend.key(agent(**line)) == key


@pytest.mark.usefixtures("home")
def test_a_service_of_ones_own_may_need_no_key() -> None:
    found = codex_login.payer(agent(base_url="https://models.example/v1"))
    assert (found.billing, found.env, found.hosts, found.lent) == ("api", {}, ("models.example",), False)
    assert backend.key(agent(base_url="https://models.example/v1")) == "no key needed"


@pytest.mark.usefixtures("home")
def test_a_leg_nobody_pays_for_ends_as_auth(opened: Opened) -> None:
    leg = opened({"": [do.reply(DONE)]})
    assert leg.take(leg.ask(billing="subscription")).ended_by == "auth"
    assert leg.bodies() == []
