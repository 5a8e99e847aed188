"""Receipts and starts as bytes: canonical JSON, read strictly, named when they cannot be read."""

from typing import TypeVar

import msgspec

from relay.errors import Exit, RelayError
from relay.host import files
from relay.terms import SCHEMA, Receipt, Start

T = TypeVar("T", Receipt, Start)


def encode(value: Receipt | Start) -> bytes:
    """Return canonical JSON: sorted keys, one value a file, a final newline."""
    return _canonical(value)


def canonical(data: bytes) -> bool:
    """Tell whether bytes are written as `encode` writes them; a version with fewer fields did so as well."""
    return _canonical(msgspec.json.decode(data)) == data


def _canonical(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=1) + b"\n"


def decode(data: bytes, kind: type[T], path: str) -> T:
    """Read a receipt or a start; a torn one, an unknown field or schema is an error (exit 6) that names the file."""
    try:
        found = msgspec.json.decode(data)
        schema = found.get("schema") if isinstance(found, dict) else None
        if schema != SCHEMA:
            raise RelayError(
                f"`{path}` has schema `{schema}`, and this version reads {SCHEMA}",
                hint="use the version of Relay that wrote it",
                exit_code=Exit.GATE,
            )
        return msgspec.convert(found, kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        problem = str(error).removeprefix("JSON is malformed: ")
        raise RelayError(
            f"`{path}` cannot be read: {problem[:1].lower()}{problem[1:]}",
            hint="a sealed file is never rewritten: restore it from a backup, or look with `relay verify`",
            exit_code=Exit.GATE,
        ) from None


def sha256(receipt: Receipt) -> str:
    """Return the hash that the next receipt carries as `prev`."""
    return files.sha256(encode(receipt))


def chained(receipt: Receipt, prev: str) -> Receipt:
    """Return the receipt with the hash of the one before it."""
    return msgspec.structs.replace(receipt, prev=prev)
