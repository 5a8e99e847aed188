"""Replies: what fits becomes claims, and everything else is said with its place."""

import json
from typing import Any

import pytest

from relay.record import reply
from relay.terms import JudgeReply, Kind, WorkReply

FINDING = {"severity": "major", "title": "off by one", "path": "calc.py", "line": 2, "quote": "a - b"}


def _problem(value: object, kind: Kind = "judge") -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    found, problem = reply.decode(raw, kind, "n1")
    assert found is None
    return problem


def test_a_work_reply_is_read() -> None:
    raw = {"status": "done", "summary": "fixed", "decisions": [{"what": "a", "why": "b"}], "document": None}
    found, problem = reply.decode(json.dumps(raw).encode(), "work", "n1")
    assert problem == ""
    assert isinstance(found, WorkReply)
    assert found.decisions[0].why == "b"


def test_a_judges_reply_is_read() -> None:
    repro = {"command": "python t.py", "files": {"t.py": "assert False"}, "expect_exit": 1}
    raw = {"verdict": "revise", "nonce": "n1", "findings": [FINDING | {"repro": repro}]}
    found, problem = reply.decode(json.dumps(raw).encode(), "judge", "n1")
    assert problem == ""
    assert isinstance(found, JudgeReply)
    assert found.findings[0].repro is not None
    assert found.findings[0].repro.files == {"t.py": "assert False"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"verdict": "yes", "nonce": "n1"}, "`$.verdict`: `yes` is not one of approve, revise, blocked"),
        ({"verdict": "aprove", "nonce": "n1"}, "did you mean `approve`?"),
        ({"verdict": "approve"}, "`$.nonce` is missing"),
        ({"verdict": "approve", "nonce": "n2"}, "`$.nonce` is not the nonce of this leg"),
        ({"verdict": "approve", "nonce": ""}, "`$.nonce` is not the nonce of this leg"),
        ({"verdict": "approve", "nonce": "n1", "sumary": ""}, "`$.sumary` is not a known key, did you mean `summary`?"),
        ({"verdict": "approve", "nonce": "n1", "findings": [FINDING | {"line": "2"}]}, "`$.findings[0].line`"),
        ({"verdict": "approve", "nonce": "n1", "findings": [FINDING | {"line": 2.5}]}, "`$.findings[0].line`"),
        ({"verdict": "approve", "nonce": "n1", "findings": [FINDING, {}]}, "`$.findings[1].severity` is missing"),
        (
            {
                "verdict": "revise",
                "nonce": "n1",
                "findings": [FINDING | {"repro": {"command": "x", "files": {"a.b": 1}}}],
            },
            '`$.findings[0].repro.files."a.b"`: expected `str`, got `int`',
        ),
        ({"verdict": "approve", "nonce": "n1", "criteria": [{"id": "c1", "met": "yes"}]}, "`$.criteria[0].met`"),
        ([{"verdict": "approve", "nonce": "n1"}], "expected `object`, got `array`"),
        ("approve", "expected `object`, got `str`"),
    ],
)
def test_what_does_not_fit_is_named_with_its_path(value: object, words: str) -> None:
    assert words in _problem(value)


def test_a_work_reply_given_to_a_judge_does_not_fit_nor_the_other_way_round() -> None:
    assert "`$.status` is not a known key" in _problem({"status": "done"})
    assert "`$.verdict` is not a known key" in _problem({"verdict": "approve", "nonce": "n1"}, "work")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"{", "not JSON"),
        (b"done", "not JSON"),
        (b'{"status": "done"} {"status": "done"}', "more follows after the first JSON value"),
        (b'{"status": "done"}\nthat was all', "more follows after the first JSON value"),
        (b'{"status": "blocked", "status": "done"}', "the key `status` is given twice"),
        (b'{"status": "done\0"}', "NUL byte at offset 16"),
        (b'{"status": "done", "summary": "a\\u0000b"}', "`$.summary` has a NUL"),
        (b'{"status": "done", "summary": "\xff"}', "not UTF-8"),
        (b'{"status": "done", "summary": "\\ud800"}', "surrogate"),
        (b'{"status": NaN}', "`NaN` is not a JSON value"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"status": ' + b"9" * 5_000 + b"}", "cannot"),
        (b'"' + b"x" * (4 << 20) + b'"', "limit is 4194304"),
    ],
)
def test_what_is_no_reply_is_said_in_words(raw: bytes, words: str) -> None:
    problem = _problem(raw, "work")
    assert words in problem or (words == "cannot" and "not JSON that can be read" in problem)


def test_a_sealed_reply_is_read_again_without_its_nonce() -> None:
    found, problem = reply.decode(b'{"verdict": "approve", "nonce": "n7"}', "judge", None)
    assert (problem, found) == ("", JudgeReply(verdict="approve", nonce="n7"))


def test_no_reply_at_all_is_said() -> None:
    assert reply.decode(None, "work", "n1") == (None, "there is no reply")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\rb\x08c\x7f\x9b2Jd", "abcd"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("\x1b(Bend\x1b", "end"),
        ("\x1b]never ended", "never ended"),
        ("na\u00efve \U0001f600", "na\u00efve \U0001f600"),
    ],
)
def test_terminal_controls_are_taken_out_of_strings(given: str, kept: str) -> None:
    raw = json.dumps({"status": "done", "summary": given, "risks": [given]}).encode()
    found, problem = reply.decode(raw, "work", "n1")
    assert problem == ""
    assert isinstance(found, WorkReply)
    assert (found.summary, found.risks) == (kept, (kept,))


def test_a_key_with_terminal_controls_is_refused() -> None:
    repro = {"command": "x", "files": {"a\x1b[2Jb": ""}}
    problem = _problem({"verdict": "revise", "nonce": "n1", "findings": [FINDING | {"repro": repro}]})
    assert problem.endswith("`$.findings[0].repro.files` has a key with control characters")


def _properties(schema: dict[str, Any]) -> list[dict[str, Any]]:
    definitions = [schema, *schema["$defs"].values()]
    return [field for one in definitions for field in one.get("properties", {}).values()]


@pytest.mark.parametrize("kind", ["work", "judge"])
def test_the_schema_describes_every_field_and_allows_no_other(kind: Kind) -> None:
    schema = reply.schema(kind)
    assert all(field["description"] for field in _properties(schema))
    assert all(one["additionalProperties"] is False for one in [schema, *schema["$defs"].values()])
    assert set(schema["properties"]) == set(reply.TYPES[kind].__struct_fields__)
    assert json.loads(json.dumps(schema)) == schema


def test_no_description_is_left_over() -> None:
    schemas = [(reply.TYPES[kind].__name__, reply.schema(kind)) for kind in reply.TYPES]
    named = {(name, field) for name, schema in schemas for field in schema["properties"]}
    named |= {
        (name, field) for _, one in schemas for name, inner in one["$defs"].items() for field in inner["properties"]
    }
    assert {f"{name}.{field}" for name, field in named} == set(reply.DESCRIPTIONS)


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"existing": [{"path": "a" * 5000, "quote": "x"}]}, "a path is longer than 4096 bytes"),
        ({"existing": [{"path": "a.py", "quote": "x" * 30_000}]}, "a quote is longer than 20000 characters"),
        ({"existing": [{"path": "a.py", "quote": "x"}] * 300}, "`$.existing` has 300 entries, the limit is 200"),
    ],
)
def test_no_honest_reply_has_so_much_of_it(more: dict[str, object], wrong: str) -> None:
    raw = json.dumps({"status": "done", **more}).encode()
    assert reply.decode(raw, "work", None) == (None, f"the reply does not fit: {wrong}")
