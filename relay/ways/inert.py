"""Agents' words as they leave: readable, and nothing in them acts.

A forge takes a command from a few signs: `#1` behind a word like "fixes" closes, `@team` calls, `[skip ci]` skips, a
line that begins with `/` or looks like a trailer is obeyed, Markdown fetches images and hides text. Forges look for
these in the bare text and in the page that it makes, so neither a quote nor a backslash alone keeps them still
(GitLab's closing pattern, for instance, reads raw text). So a blank stands behind each sign, every line is quoted, and
on a page the marks of Markdown and HTML are escaped.
"""

import re
import textwrap
import unicodedata
from collections.abc import Iterable
from typing import Final

from relay.host import redact, term

WIDE: Final = 100
"""Characters of a line of a commit's message, from which on it is wrapped."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""What Unicode calls control, format, private use, surrogate, and separators of lines that are none."""
_SIGN: Final = re.compile(
    r"@(?=\S)"  # calls a person or a team
    r"|#(?=\w)"  # an issue, whatever stands before it
    r"|!(?=\d)"  # a merge request of GitLab
    # An issue again: GH-2, and SHOP-2 as Jira and GitLab read it; what every engineer's text is full of is none.
    r"|\b(?!(?:UTF|SHA|ISO|RFC|AES|CVE|PEP)-)(?:(?i:gh)|[A-Z][A-Z0-9_]+)-(?=\d)"
    r"|:(?=//)|\b(?i:www)(?=\.)"  # an address: "closes https://..." closes as well
    r"|\*\*(?=\*)"  # ***NO_CI***
)
_MARK: Final = re.compile(r"[\\`*_\[\]<>&|~$#]")
_WILD: Final = re.compile(r"[\\`\[<|]")
_ROUND: Final = str.maketrans("[]", "()")


def seen(text: str) -> str:
    """Return what a reader sees of a text: nothing that turns, hides or controls, and no secret."""
    shown = (one for one in term.plain(text) if one in "\n\t" or unicodedata.category(one) not in _UNSEEN)
    return redact.own().text("".join(shown)).strip()


def line(text: str) -> str:
    """Return a name, as the value of a trailer: one line that calls nobody."""
    return _apart(_joined(text)).translate(_ROUND)


def message(text: str, most: int) -> str:
    """Quote an agent in a commit's message, at most `most` characters, as lines that are neither comment nor trailer.

    Brackets are made round, since every service has words of its own that act in them.
    """
    still = _apart(_cut(seen(text), most)).translate(_ROUND)
    wrap = textwrap.TextWrapper(WIDE, replace_whitespace=False, break_on_hyphens=False)
    return _quoted(part for one in still.splitlines() for part in wrap.wrap(one) or [""])


def page(text: str, most: int) -> str:
    """Quote an agent on a page, at most `most` characters."""
    return _quoted(_escaped(_cut(seen(text), most)).splitlines())


def inline(text: str, most: int) -> str:
    """Return an agent's words as part of a line of a page: of a list, or of a table."""
    return _escaped(_joined(text)[:most])


def code(text: str, most: int) -> str:
    """Return a command or a path in a line of a page: as code, unless a mark that code cannot escape stands in it."""
    still = _apart(_joined(text)[:most])
    return _escaped(still) if _WILD.search(still) else f"`{still}`"


def quoted(text: str) -> str:
    """Quote the person, whose words may act as they are meant to; only a quote keeps them from hiding what follows."""
    return _quoted(seen(text).splitlines())


def _joined(text: str) -> str:
    return " ".join(seen(text).split())


def _escaped(text: str) -> str:
    return _MARK.sub(r"\\\g<0>", _apart(text))


def _apart(text: str) -> str:
    return _SIGN.sub(r"\g<0> ", text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n(cut here: {len(text) - most} more characters)"


def _quoted(lines: Iterable[str]) -> str:
    return "\n".join(f"> {one}".rstrip() for one in lines)
