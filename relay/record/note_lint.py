"""Reading a note: any note, hand-written ones too."""

import datetime as dt
import re
import tomllib
from typing import Any, Final

from relay.host import clock
from relay.record.note import BUDGET, COMMIT, SECTIONS
from relay.terms import SCHEMA

TEXTS: Final = ("run", "leg", "from", "to", "boundary", "about", "code_version", "spec_sha256", "ended_by")
FIXED: Final = re.compile(r"^## (?:Recovery steps|Must)$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
"""Sections that people wrote and that are copied unchanged, a commit id in a command included."""


def front(text: str) -> dict[str, Any]:
    """Read the front matter; `ValueError` says what is wrong with it."""
    if not text.startswith("+++\n"):
        raise ValueError("the note does not begin with a line `+++`")
    end = text.find("\n+++\n", 3)
    if end < 0:
        raise ValueError("the front matter is not closed by a line `+++`")
    return tomllib.loads(text[4 : end + 1])


def lint(text: str) -> list[str]:
    """Return what is wrong with a note, a sentence each; an empty list is a good note."""
    try:
        fields = front(text)
    except ValueError as error:
        return [str(error)]
    faults = [f"`{key}` is missing or not a text" for key in TEXTS if not isinstance(fields.get(key), str)]
    faults += [f"unknown key `{key}`" for key in sorted(fields.keys() - {*TEXTS, "schema", "written_at", "round"})]
    if fields.get("schema") != SCHEMA:
        faults.append(f"`schema` is `{fields.get('schema')}`, and this version reads {SCHEMA}")
    if type(fields.get("round")) is not int:
        faults.append("`round` is missing or not a number")
    faults += _written(fields.get("written_at"))
    if isinstance(fields.get("boundary"), str) and fields["boundary"] not in {"implement", "verify-only"}:
        faults.append(f"`boundary` is `{fields['boundary']}`: it is `implement` or `verify-only`")
    if isinstance(fields.get("code_version"), str) and not fields["code_version"].startswith("<pending:"):
        faults.append("`code_version` carries a value that can drift: write `<pending: git rev-parse HEAD>`")
    return faults + _body(text)


def _written(value: object) -> list[str]:
    """Check the time of writing."""
    if not isinstance(value, dt.datetime) or value.tzinfo is None:
        return ["`written_at` is missing or not a time with an offset"]
    return ["`written_at` lies in the future"] if value > clock.now() + dt.timedelta(minutes=5) else []


def _body(text: str) -> list[str]:
    """Check the sections, the budget, and values that drift."""
    body = text[text.find("\n+++\n", 3) + 5 :]
    named = re.findall(r"^## (.+)$", body, re.MULTILINE)
    faults = [f"section `## {name}` is missing" for name in SECTIONS if name not in named]
    known = [name for name in named if name in SECTIONS]
    if not faults and known != list(SECTIONS):
        faults.append(f"the sections stand in another order than {', '.join(SECTIONS)}")
    if len(text) > BUDGET:
        faults.append(f"the note has {len(text)} characters, and the budget is {BUDGET}")
    if COMMIT.search(FIXED.sub("", body)):
        faults.append("the text carries a full commit id, which can drift: write `<pending: COMMAND>`")
    return faults
