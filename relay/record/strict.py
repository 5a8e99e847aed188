"""Strict reading of TOML and JSON: what is wrong, where it stands, and what was probably meant.

msgspec names a place below a table as `$.agents[...]`; a person needs the key. So a value that was refused is walked
once more along its type, down to the smallest piece that does not fit.
"""

import json
import re
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar

import msgspec

from relay.errors import Exit, RelayError
from relay.terms import SCHEMA

T = TypeVar("T")
LIMIT: Final = 1 << 20
"""Bytes of the largest TOML file that is read; the ones people write have some hundred lines."""

UNREAD: Final = re.compile(r"\{[^{}]*,[^{}]*\}|^!|^(?:\./?)*$|^\*\*?/?$")
"""What a shell or a .gitignore knows and a pattern of tests does not, and what would call everything a test."""

BARE: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class Wrong(Exception):  # noqa: N818 - it is data about a text, which the caller turns into words for a person
    """What does not fit; `text` names the place, `hint` lists what would have been understood."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint


def toml(data: bytes, kind: type[T], where: str, *, exit_code: Exit = Exit.USAGE) -> T:
    """Read a TOML file as `kind`; whatever does not fit is a `RelayError` that names `where` and the place in it."""
    try:
        return convert(_known_schema(load_toml(data), kind), kind)
    except Wrong as wrong:
        raise refusal(where, wrong.text, wrong.hint, exit_code) from None


def refusal(where: str, text: str, hint: str = "", exit_code: Exit = Exit.USAGE) -> RelayError:
    """Make the error for something wrong in the file `where`."""
    return RelayError(f"`{where}`: {text}", hint=hint or f"edit `{where}`", exit_code=exit_code)


def load_toml(data: bytes) -> dict[str, Any]:
    """Read TOML into plain values; raises `Wrong`."""
    if len(data) > LIMIT:
        raise Wrong(f"{len(data)} bytes are too many, the limit is {LIMIT}")
    try:
        return tomllib.loads(_decoded(data))
    except RecursionError:
        raise Wrong("it is nested too deeply") from None
    except ValueError as error:
        raise Wrong(f"it is not TOML: {_lower(str(error))}") from None


def load_json(data: bytes) -> Any:  # noqa: ANN401 - JSON is anything until `convert` looked at it
    """Read exactly one JSON value; a key given twice, NaN and half of a surrogate pair are refused; raises `Wrong`."""
    text = _decoded(data)
    if not text.strip():
        raise Wrong("it is empty")
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise Wrong(f"more follows after the first JSON value, at line {error.lineno}") from None
        raise Wrong(f"it is not JSON: {_lower(str(error))}") from None
    except UnicodeEncodeError:
        raise Wrong("a string holds half of a surrogate pair") from None
    except RecursionError:
        raise Wrong("it is nested too deeply") from None
    except ValueError as error:
        raise Wrong(f"it is not JSON that can be read: {_lower(str(error))}") from None
    return value


def convert(value: object, kind: type[T], root: str = "") -> T:
    """Turn plain values into `kind`, without any guess; raises `Wrong` with the path below `root`."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _blame(value, kind, root) or Wrong(_lower(str(error))) from None


def close(word: str, known: Iterable[str]) -> str:
    """Return ", did you mean `X`?" for the nearest known word, or nothing."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f", did you mean `{near[0]}`?" if near else ""


def amount(where: str, path: str, value: float | None, *, least: float | None = None, most: float = 1_000_000) -> None:
    """Refuse a number that is not above zero (or not at least `least`) and at most `most`; NaN is neither."""
    if value is None or ((value > 0 if least is None else value >= least) and value <= most):
        return
    floor = "above 0" if least is None else f"at least {least:g}"
    raise refusal(where, f"`{path}` is {value}, it must be {floor} and at most {most:g}")


def inside(where: str, path: str, names: Iterable[str]) -> None:
    """Refuse a path or pattern that could lead out of the repository."""
    for name in names:
        if not name.strip() or "\0" in name or PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise refusal(where, f"`{path}` has `{name}`, it must be a path below the repository's root")
        if path == "tests.paths" and UNREAD.search(name):
            hint = 'write a pattern for each: paths = ["tests/**", "src/**/test_*.py"]'
            raise refusal(where, f"`{path}` has `{name}`, which would not mean what it says", hint)


def variables(where: str, path: str, names: Iterable[str]) -> None:
    """Refuse what cannot be the name of a variable; a value that somebody wrote there is not repeated."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            shown = re.sub("=.+", "=...", name, flags=re.DOTALL)
            hint = 'write its name alone, and set it where you call relay: env = ["NAME"]'
            raise refusal(where, f"`{path}` has `{shown}`, which is not the name of a variable", hint)


def _known_schema(value: object, kind: type) -> object:
    """Refuse an unknown schema number by name; drop a known one where the struct does not keep it."""
    if not isinstance(value, dict) or "schema" not in value:
        return value
    if type(value["schema"]) is not int or value["schema"] != SCHEMA:
        raise Wrong(f"schema `{value['schema']}` is unknown, this Relay reads {SCHEMA}", "install a newer Relay")
    if "schema" in {field.name for field in msgspec.structs.fields(kind)}:
        return value
    return {key: item for key, item in value.items() if key != "schema"}


def _decoded(data: bytes) -> str:
    if b"\0" in data:
        raise Wrong(f"it has a NUL byte at offset {data.index(0)}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Wrong(f"it is not UTF-8, see byte {error.start}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that says two things under one key: which one counts would be a matter of the parser."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise Wrong(f"the key `{next(key for key in keys if keys.count(key) > 1)}` is given twice")
    return found


def _no_constant(name: str) -> Any:  # noqa: ANN401 - json's own signature
    raise Wrong(f"`{name}` is not a JSON value")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _below(path: str, key: str) -> str:
    """Return the path of a key; one with dots or spaces is quoted as TOML would."""
    shown = key if key and set(key) <= BARE else json.dumps(key, ensure_ascii=False)
    return f"{path}.{shown}" if path else shown


def _blame(value: object, kind: Any, path: str) -> Wrong | None:  # noqa: ANN401 - a type form, not only a class
    """Say what is wrong at the smallest piece of `value` that does not fit `kind`; None if all of it fits."""
    kind = _option(kind, value)
    inner = typing.get_args(kind)
    if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        wrong = _blame_struct(value, kind, path)
    elif isinstance(value, dict) and typing.get_origin(kind) is dict:
        wrong = _first(_blame(item, inner[1], _below(path, key)) for key, item in value.items())
    elif isinstance(value, list) and typing.get_origin(kind) is tuple:
        wrong = _first(_blame(item, inner[0], f"{path}[{number}]") for number, item in enumerate(value))
    else:
        wrong = None
    return wrong or _blame_leaf(value, kind, path)


def _blame_struct(value: Mapping[str, object], kind: type[msgspec.Struct], path: str) -> Wrong | None:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key in value:
        if key not in fields:
            text = f"`{_below(path, key)}` is not a known key{close(key, fields)}"
            return Wrong(text, f"known keys{_at(path)}: {', '.join(fields)}")
    if wrong := _first(_blame(item, fields[key].type, _below(path, key)) for key, item in value.items()):
        return wrong
    missing = (key for key, field in fields.items() if field.required and key not in value)
    hint = f"known keys{_at(path)}: {', '.join(fields)}"
    return _first(Wrong(f"`{_below(path, key)}` is missing", hint) for key in missing)


def _blame_leaf(value: object, kind: Any, path: str) -> Wrong | None:  # noqa: ANN401 - a type form, not only a class
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        place = f"`{path}`: " if path else ""
        if typing.get_origin(kind) is typing.Literal and isinstance(value, str):
            known = [str(one) for one in typing.get_args(kind)]
            return Wrong(f"{place}`{value}` is not one of {', '.join(known)}{close(value, known)}")
        return Wrong(place + _lower(str(error).split(" - at ")[0].replace(" | null", "")))
    return None


def _option(kind: Any, value: object) -> Any:  # noqa: ANN401 - a type form, not only a class
    """Choose the member of a union that `value` was meant for, by its shape; anything else stays as it is."""
    if typing.get_origin(kind) not in {types.UnionType, typing.Union}:
        return kind
    options = [one for one in typing.get_args(kind) if one is not types.NoneType]
    shaped = [one for one in options if isinstance(value, dict) == _is_table(one)]
    return shaped[0] if len(shaped) == 1 and value is not None else kind


def _is_table(kind: Any) -> bool:  # noqa: ANN401 - a type form, not only a class
    return typing.get_origin(kind) is dict or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))


def _first(wrongs: Iterable[Wrong | None]) -> Wrong | None:
    return next((wrong for wrong in wrongs if wrong is not None), None)


def _at(path: str) -> str:
    return f" of `{path}`" if path else ""
