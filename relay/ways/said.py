"""What another machine said, as it may be kept and shown: one line of a bounded length, with no secret in it."""

import re
from typing import Final

from relay.host import redact, term

_USER: Final = re.compile(r"""(?<=://)[^/\s'"`]*@""")


def line(text: object, longest: int = 300) -> str:
    """Return one line without controls and secrets: whoever speaks may repeat a token, or play the terminal."""
    plain = " ".join(term.plain(str(text)).split())
    return redact.own().text(address(plain))[:longest]


def address(text: str) -> str:
    """Return an address, or a text with addresses in it, without the login that stands before their hosts."""
    return _USER.sub("", text)
