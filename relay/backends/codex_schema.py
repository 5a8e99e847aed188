"""The schema of a reply in the form that the service insists on, and the way back from what fits it.

Codex asks for its schema strictly, always. The service then wants every field required, every value typed, and knows
no mapping with free names: such a one becomes a list of names with values, which is turned back here.
"""

from typing import Any, Final

import msgspec

Json = dict[str, Any]

_NAMES: Final = "name"
_VALUES: Final = "value"


def strict(schema: Json) -> Json:
    """Return a schema as the service takes it; the order of the fields stays."""
    found = {name: _inner(value) for name, value in schema.items() if name != "default"}
    if "enum" in found and "type" not in found and all(isinstance(value, str) for value in found["enum"]):
        found["type"] = "string"
    free = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(free, dict):
        entry = {
            "type": "object",
            "properties": {_NAMES: {"type": "string"}, _VALUES: strict(free)},
            "required": [_NAMES, _VALUES],
            "additionalProperties": False,
        }
        kept = {name: value for name, value in found.items() if name in {"description", "$defs"}}
        return {"type": "array", "items": entry, **kept}
    if schema.get("type") == "object":
        found["required"] = list(schema.get("properties", {}))
        found["additionalProperties"] = False
    return found


def _inner(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        if "type" in value or "enum" in value or "anyOf" in value or "$ref" in value:
            return strict(value)
        return {name: _inner(each) for name, each in value.items()}
    return [_inner(each) for each in value] if isinstance(value, list) else value


def plain(text: str, schema: Json) -> bytes:
    """Return a reply that fits the strict schema as one that fits `schema`; what is no JSON at all stays as it is."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text.encode(errors="replace")
    try:
        return msgspec.json.encode(_back(found, schema, schema.get("$defs", {})))
    except RecursionError:
        return text.encode(errors="replace")


def _back(value: Any, schema: Json, named: Json) -> Any:  # noqa: ANN401 - JSON
    """Turn lists of names and values back into mappings, wherever the schema has one; all else stays."""
    if "$ref" in schema:
        return _back(value, named.get(schema["$ref"].rpartition("/")[2], {}), named)
    for each in schema.get("anyOf", ()) if value is not None else ():
        if each.get("type") != "null":
            return _back(value, each, named)
    free = schema.get("additionalProperties")
    if isinstance(value, list) and isinstance(free, dict):
        pairs = [entry for entry in value if isinstance(entry, dict) and entry.keys() == {_NAMES, _VALUES}]
        fits = len(pairs) == len(value) and all(isinstance(entry[_NAMES], str) for entry in pairs)
        return {entry[_NAMES]: entry[_VALUES] for entry in pairs} if fits else value
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [_back(each, schema["items"], named) for each in value]
    if isinstance(value, dict) and isinstance(schema.get("properties"), dict):
        fields = schema["properties"]
        return {name: _back(each, fields.get(name, {}), named) for name, each in value.items()}
    return value
