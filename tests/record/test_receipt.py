"""Receipts as bytes: canonical, read back as they were, and refused by name where they cannot be."""

import json

import msgspec
import pytest

from relay.errors import Exit, RelayError
from relay.host import files
from relay.record import receipt
from relay.terms import Receipt, Start, Usage
from tests.receipts import act, check, criterion, judge, relay, start, told, work

RECEIPTS = told(
    work(checks=(check(1, base_exit=0),), criteria=(criterion(met=True),), usage=Usage(input=7), seconds=1.5),
    judge("revise", blocking=["F1"]),
    act("answer"),
    act("reject", back_to="implement"),
)
START = msgspec.structs.replace(start(relay(), "01-implement"), fingerprint={"config": "1"})


@pytest.mark.parametrize("sealed", RECEIPTS, ids=lambda sealed: sealed.leg)
def test_a_receipt_is_read_back_as_it_was_written(sealed: Receipt) -> None:
    assert receipt.decode(receipt.encode(sealed), Receipt, "receipt.json") == sealed


def test_a_start_is_read_back_as_it_was_written() -> None:
    assert receipt.decode(receipt.encode(START), Start, "start.json") == START


def test_the_bytes_are_canonical() -> None:
    data = receipt.encode(RECEIPTS[0])
    plain = json.loads(data)
    assert list(plain) == sorted(plain)
    assert data.endswith(b"}\n")
    assert receipt.encode(receipt.decode(data, Receipt, "receipt.json")) == data
    assert receipt.sha256(RECEIPTS[0]) == files.sha256(data)


def test_a_version_that_knew_fewer_fields_wrote_canonical_bytes_too() -> None:
    older = {name: value for name, value in _whole().items() if name != "settled"}
    data = json.dumps(older, sort_keys=True, indent=1).encode() + b"\n"
    assert receipt.canonical(data)
    assert receipt.decode(data, Receipt, "receipt.json") == RECEIPTS[0]
    assert not receipt.canonical(json.dumps(older, indent=1).encode())
    assert not receipt.canonical(data + b"\n")


def test_money_is_whole_microdollars() -> None:
    data = json.loads(receipt.encode(RECEIPTS[0])) | {"cost_microusd": 0.5}
    with pytest.raises(RelayError, match="cost_microusd"):
        receipt.decode(json.dumps(data).encode(), Receipt, "receipt.json")


def test_the_next_receipt_names_this_one_by_hash() -> None:
    chained = receipt.chained(RECEIPTS[1], receipt.sha256(RECEIPTS[0]))
    assert chained == msgspec.structs.replace(RECEIPTS[1], prev=files.sha256(receipt.encode(RECEIPTS[0])))


def _whole() -> dict[str, object]:
    plain: dict[str, object] = json.loads(receipt.encode(RECEIPTS[0]))
    return plain


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "truncated"),
        (receipt.encode(RECEIPTS[0])[:-40], "truncated"),
        (receipt.encode(RECEIPTS[0]) + b"{}", "trailing characters"),
        (b"\x00" * 600, "invalid character"),
        (b'{"schema": 1, "run": "\xff"}', "invalid UTF-8"),
        (b"[" * 100_000, "recursion"),
        (b"[]", "schema `None`"),
        (b"{}", "schema `None`"),
        (json.dumps(_whole() | {"schema": 2}).encode(), "schema `2`, and this version reads 1"),
        (json.dumps(_whole() | {"verdict": "perhaps"}).encode(), "`$.verdict`"),
        (json.dumps(_whole() | {"ended_by": "boredom"}).encode(), "`$.ended_by`"),
        (json.dumps(_whole() | {"act": "dance"}).encode(), "`$.act`"),
        (json.dumps(_whole() | {"extra": 1}).encode(), "unknown field `extra`"),
        (json.dumps({"schema": 1}).encode(), "missing required field `run`"),
    ],
)
def test_a_torn_or_strange_receipt_is_refused_by_name(data: bytes, words: str) -> None:
    with pytest.raises(RelayError) as refused:
        receipt.decode(data, Receipt, "/l/01-implement/receipt.json")
    assert refused.value.exit_code == Exit.GATE
    assert "`/l/01-implement/receipt.json`" in refused.value.message
    assert words in refused.value.message
    assert refused.value.hint
