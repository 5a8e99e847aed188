"""Secrets are taken out of whatever is written or shown: those that Relay was given, and what looks like one.

A value that is known is found as it is, and inside JSON, base64 and URLs; any other one by its shape. What is no
secret stays: object ids, hashes of receipts, ordinary words. Text that was JSON is JSON afterwards.
"""

import binascii
import operator
import os
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

SHORTEST: Final = 8
"""Characters below which a value would be found in ordinary words."""
LONGEST: Final = 16 << 10
"""Bytes of the longest secret that is known by its shape: more of a line than this no stream keeps back for it."""

_START: Final = rb"(?:(?<![0-9A-Za-z_])|(?<=\\[nrtfb])|(?<=%[0-9A-Fa-f]{2})|(?<=\dm))"  # an escape is no letter
_BEGIN: Final = rb"-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----"
_END: Final = rb"-----END [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----"
_SHAPES: Final = (  # name, how it begins, the whole; of one with a group, that is the secret
    ("aws-key", (b"AKIA", b"ASIA"), rb"[A-Z0-9]{20}(?![A-Z0-9])"),
    ("github-token", (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"), rb"gh._[A-Za-z0-9]{36,255}"),
    ("github-token", (b"github_pat_",), rb"\w{33,300}"),
    ("gitlab-token", (b"glpat-", b"glptt-", b"gldt-", b"glrt-", b"glcbt-", b"glsoat-"), rb"[a-z]+-[\w.-]{20,300}"),
    ("anthropic-key", (b"sk-ant-",), rb"[\w-]{27,300}"),
    ("openai-key", (b"sk-",), _START + rb"sk-(?:(?:proj|svcacct|admin|or-v1)-[\w-]{20,300}|[A-Za-z0-9]{32,200})"),
    ("slack-token", (b"xox", b"xapp-"), _START + rb"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,300}"),
    (
        "slack-webhook",
        (b"hooks.slack.com/services/", b"hooks.slack.com/workflows/"),
        rb"[a-z./]+/([A-Z0-9][\w/]{20,200})",
    ),
    ("google-key", (b"AIza",), _START + rb"[\w-]{39}"),
    ("package-token", (b"npm_", b"pypi-"), _START + rb"(?:npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,500})"),
    ("stripe-key", (b"sk_live_", b"sk_test_", b"rk_live_", b"rk_test_"), _START + rb"\w{24,200}"),
    ("jwt", (b"eyJ",), rb"[\w-]{11,2000}\.eyJ[\w-]{8,8000}\.[\w-]{8,2000}"),
    (
        "private-key",
        (b"-----BEGIN ",),
        _BEGIN + rb"(?:(?s:(?:(?!-----BEGIN).){0,16000}?)" + _END + rb"|(?:\s|\\[nr]|[A-Za-z0-9+/=]{16,})*)",
    ),
    ("password", (b"://",), rb"""://[^\s/:@"'`<>\\]{0,100}:(?![$<{*]|%s|%\()([^\s/"'`<>\\[]{1,200})@"""),
)
_ASSIGNED: Final = (
    rb"""[=:][ \t\\"'`]{0,6}(?:(?:[Bb]earer|[Bb]asic|token) )?([^\s"'`\\,;&<>()\[\]{}|]{12,4000}+)(?!\()"""
)
_ASSIGNEE: Final = (
    rb"(?i)(?:token|secret|passw(?:or)?d|passphrase|authorization|credentials?"
    rb"|(?:api|access|private|signing|encryption|account|auth|shared)[_-]?key)[\w-]{0,24}[ \t\\\"'`]{0,6}$"
)
_HINTS: Final = (b"token", b"secret", b"passw", b"passphrase", b"authorization", b"credential", b"key")
_BEFORE: Final = 96
"""Bytes before a value in which its name is looked for."""
_HASH: Final = rb"(?:\w+[:-])?(?:[0-9a-f]{40}|[0-9a-f]{64})"
_KINDS: Final = str.maketrans(string.ascii_letters + string.digits, "a" * 26 + "A" * 26 + "0" * 10)
_DISTINCT: Final = 8
_OPEN: Final = _BEGIN + rb"(?!(?s:.*)" + _END + rb")"
_SECRETIVE: Final = (
    r"(?i)token|secret|passw|pass(?:_|$)|passphrase|api_?key|_key$|_pat$|_pwd$|credential|auth(?!or)|cookie|webhook"
)
_PLAIN: Final = r"[A-Za-z]+|\d{1,11}|[/~].*|\w+://[^@]*"
_WORDS: Final = r"(?:[A-Za-z]+|\d+)(?:[-_. :]+(?:[A-Za-z]+|v?\d+))*"


class Span(NamedTuple):
    """Where a secret is; `begin` is where that which tells that it is one begins."""

    start: int
    end: int
    begin: int
    name: str


def known(env: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
    """Return the secrets in an environment by name: what is `named`, what has a secret's name, a password in a URL.

    Not what is none whatever its name: a word, a short number, a path, a plain URL.
    """
    found, chosen = {}, frozenset(named)
    for name, whole in env.items():
        value = whole.strip()
        if inner := re.search(r"://[^\s/:@]*:([^\s/]+)@", value):
            found[f"{name}.password"] = inner[1]
        if re.search(_SECRETIVE, name) or (name in chosen and not re.fullmatch(_WORDS, value)):
            found[name] = "" if re.fullmatch(_PLAIN, value) and not _random(os.fsencode(value)) else value
    return {name: value for name, value in found.items() if len(value) >= SHORTEST}


class Redactor:
    """Takes secrets out and says `[redacted NAME]` instead; `secrets` are values by name. Twice is as good as once."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self.forms: dict[bytes, str] = {}
        self.learn(secrets)

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Take these out too from now on: what was read from a login's file, say."""
        for name, value in secrets.items():
            for form in _forms(os.fsencode(value)) if len(value) >= SHORTEST else ():
                self.forms.setdefault(form, re.sub(r"[^\w.-]", "-", name))

    def spans(self, data: bytes) -> list[Span]:
        """Return where the secrets are, in their order, none over another."""
        merged: list[Span] = []
        for start, end, begin, name in sorted(self._found(data), key=lambda span: span.start):
            before = data[max(0, start - 16) : start]
            first = (
                start - (len(before) - len(before.rstrip(b"\\"))) % 2
            )  # an escape is taken whole: `\n` of `\nSECRET`
            if merged and first < merged[-1].end:
                last = merged[-1]
                merged[-1] = last._replace(end=max(end, last.end), begin=min(begin, last.begin))
            else:
                merged.append(Span(first, end, min(begin, first), name))
        return merged

    def _found(self, data: bytes) -> Iterator[Span]:
        for form, name in self.forms.items():
            yield from (Span(at, at + len(form), at, name) for at in _places(data, form))
        for name, beginnings, shape in _SHAPES:
            for beginning in beginnings:
                for at in _places(data, beginning):  # many times quicker than a search for the whole
                    if match := re.compile(shape).match(data, at):
                        yield Span(*match.span(match.lastindex or 0), max(0, at - 4), name)
        lowered = data.lower()
        if any(hint in lowered for hint in _HINTS):
            for match in re.finditer(_ASSIGNED, data):
                begin = max(0, match.start() - _BEFORE)
                if re.search(_ASSIGNEE, data[begin : match.start()]) and _random(match[1]):
                    yield Span(*match.span(1), begin, "secret")

    def document(self, data: bytes) -> bytes:
        """Return JSON without the secrets in it, however its writer escaped them; what is no JSON as `bytes` does."""
        import json  # as in `_forms`

        try:
            value = json.loads(data)
            clean = self._value(value)
            data = data if clean == value else json.dumps(clean, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            pass
        return self.bytes(data)

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self._value(item) for name, item in value.items()}
        return [self._value(item) for item in value] if isinstance(value, list) else value

    def text(self, text: str) -> str:
        """Return `text` without the secrets in it."""
        return self.bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def bytes(self, data: bytes) -> bytes:
        """Return `data` without the secrets in it; it may be no text at all."""
        return without(data, self.spans(data))


class _Own:
    """The redactor of this process, made when it is first asked for, and the variables that were named so far."""

    named: frozenset[str] = frozenset()
    learned: Mapping[str, str] = {}
    redactor: Redactor | None = None


def own() -> Redactor:
    """Return the one redactor that stands before every writer of this process: what its environment holds, by name."""
    if _Own.redactor is None:
        _Own.redactor = Redactor({**known(os.environ, _Own.named), **_Own.learned})
    return _Own.redactor


def name(variables: Iterable[str]) -> None:
    """Say that these variables hold secrets, whatever they are called; whoever reads an agent's line says it."""
    more = _Own.named.union(variables)
    if more != _Own.named:
        _Own.named, _Own.redactor = more, None


def learn(secrets: Mapping[str, str]) -> None:
    """Say that these values are secrets, by a name for people: what an agent's program was lent, say."""
    _Own.learned = {**_Own.learned, **secrets}
    own().learn(secrets)


def forget() -> None:
    """Begin anew, with the environment as it is now: a command begins."""
    _Own.named, _Own.learned, _Own.redactor = frozenset(), {}, None


class Stream:
    """A redactor for what comes in pieces, which may cut a secret anywhere.

    Lines are given on when they are whole, up to what may be the beginning of a secret: of the last line, and of
    such a secret, no more is kept back than the longest one takes.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor, self._kept = redactor, b""
        self._keep = _BEFORE + max([LONGEST, *map(len, redactor.forms)])
        self._folded = [form for form in redactor.forms if b"\n" in form]

    def feed(self, data: bytes) -> bytes:
        """Take a piece; return what can no more be part of a secret."""
        data = self._kept + data
        line, least = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1, max(0, len(data) - self._keep)
        whole = min([line, *self._begun(data[least:], least)])
        cut, past = max(whole, least), 0
        spans = self._redactor.spans(data)
        for span in spans:
            if (span.begin if cut > whole else span.start) < cut < span.end:  # no name stands in the line before
                cut = span.end if span.end < len(data) else max(past, span.begin)
            past = span.end
        self._kept = data[cut:]
        return without(data[:cut], [span for span in spans if span.end <= cut])

    def end(self) -> bytes:
        """Return the rest."""
        rest, self._kept = self._redactor.bytes(self._kept), b""
        return rest

    def _begun(self, data: bytes, offset: int) -> Iterator[int]:
        """Yield where a secret of several lines begins that is not at its end."""
        if b"PRIVATE KEY" in data and (match := re.search(_OPEN, data)):
            yield offset + match.start()
        for form in self._folded:
            yield from (
                offset + len(data) - size
                for size in range(1, min(len(form), len(data) + 1))
                if data.endswith(form[:size])
            )


def _places(data: bytes, wanted: bytes) -> Iterator[int]:
    at = data.find(wanted)
    while at >= 0:
        yield at
        at = data.find(wanted, at + len(wanted))


def without(data: bytes, spans: Iterable[Span]) -> bytes:
    """Return `data` with the name in the place of each span."""
    parts, at = [], 0
    for span in spans:
        parts += [data[at : span.start], b"[redacted %s]" % span.name.encode()]
        at = span.end
    return b"".join([*parts, data[at:]]) if parts else data


def _forms(value: bytes) -> set[bytes]:
    """Return a value as it is, in JSON, in JSON in JSON, in a URL and in base64 wherever it begins there."""
    import json  # 1 ms that nobody needs who has no secret

    text = value.decode("utf-8", "surrogateescape")
    forms = {value}
    for plain in (True, False):
        once = json.dumps(text, ensure_ascii=plain)[1:-1]
        careful = re.sub("[&<>]", lambda found: f"\\u{ord(found[0]):04x}", once)  # as writers for web pages do
        forms |= {os.fsencode(one) for one in (once, careful, once.replace("/", "\\/"))}
        forms.add(os.fsencode(json.dumps(once, ensure_ascii=plain)[1:-1]))
    for quoted in (quote(value, safe=""), quote(value), quote_plus(value)):
        forms |= {quoted.encode(), re.sub("%..", lambda found: found[0].lower(), quoted).encode()}
    for shift in range(3):  # what surrounds it decides on the first and the last letter, so they are left out
        coded = binascii.b2a_base64(b"\0" * shift + value)
        letters = coded[-(-shift * 4 // 3) : (shift + len(value)) * 4 // 3]
        forms |= {letters, letters.translate(bytes.maketrans(b"+/", b"-_")), quote(letters, safe="").encode()}
    return forms


def _random(value: bytes) -> bool:
    """Tell whether a value seems drawn by lot: letters and digits in many changes, and no hash."""
    kinds = re.sub("[^0-9A-Za-z]", "", value.decode("latin-1")).translate(_KINDS)
    changes = sum(map(operator.ne, kinds, kinds[1:]))
    mixed = kinds.strip("0") and "0" in kinds and changes * 4 >= len(kinds) and len(set(value)) >= _DISTINCT
    return bool(mixed) and not re.fullmatch(_HASH, value)
