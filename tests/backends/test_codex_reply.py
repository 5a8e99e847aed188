"""What goes to the real Codex as a schema, and how an answer that fits it comes back."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from relay.backends import codex_schema
from relay.record import reply
from relay.terms import Kind
from tests.backends import codex
from tests.backends.codex import Leg, replied
from tests.service import Script, do, nonce, say

FINDING: dict[str, Any] = {
    "severity": "major",
    "title": "add subtracts",
    "path": "calc.py",
    "line": 2,
    "quote": "return a - b",
    "why": "it is called add",
    "same_as": None,
    "repro": {
        "command": "python3 check.py",
        "files": [{"name": "check.py", "value": "import calc; assert calc.add(1, 1) == 2"}],
        "expect_exit": 1,
        "expect_output": None,
    },
}


Opened = Callable[[Script], Leg]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Return what opens a leg on a script."""
    with codex.opened(tmp_path, monkeypatch) as open_:
        yield open_


@pytest.mark.parametrize("kind", ["work", "judge"])
def test_the_schema_is_one_that_the_service_takes(opened: Opened, kind: Kind) -> None:
    leg = opened({"": [say("no")]})
    leg.take(leg.ask(kind))
    wanted = leg.bodies()[0]["text"]["format"]
    assert wanted["strict"] is True
    for part in _objects(wanted["schema"]):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
        for field in part["properties"].values():
            assert field.keys() & {"type", "$ref", "anyOf"}
            assert "default" not in field


def _objects(schema: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - JSON
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        assert schema.get("additionalProperties", False) is False
        for value in schema.values():
            yield from _objects(value)
    for value in schema if isinstance(schema, list) else ():
        yield from _objects(value)


def test_files_of_a_repro_come_as_a_list_and_are_handed_on_as_they_are_meant(opened: Opened) -> None:
    said = {"verdict": "revise", "nonce": nonce, "summary": "", "findings": [FINDING], "existing": [], "criteria": []}
    leg = opened({"": [do.reply({**said, "question": None})]})
    taken = leg.take(leg.ask("judge", prompt=f"The nonce must be `{leg.nonce}`."))
    (finding,) = replied(taken)["findings"]
    assert finding["repro"]["files"] == {"check.py": "import calc; assert calc.add(1, 1) == 2"}


def test_a_reply_that_has_its_files_as_a_mapping_already_stays_as_it_is() -> None:
    said = {
        "verdict": "revise",
        "nonce": "x",
        "findings": [{**FINDING, "repro": {"command": "c", "files": {"a": "b"}}}],
    }
    assert json.loads(codex_schema.plain(json.dumps(said), reply.schema("judge"))) == said


@pytest.mark.parametrize("text", ["", "no JSON", '{"files": [', '[{"name": 1, "value": 2}]', "null", "3"])
def test_what_is_no_reply_at_all_is_handed_on_to_be_refused(text: str) -> None:
    raw = codex_schema.plain(text, reply.schema("judge"))
    assert reply.decode(raw, "judge", "x")[0] is None
