"""The task file: plain Markdown, with optional `+++` TOML front matter, read strictly.

The first heading is the title. The items of a list below a heading `Acceptance`, `Acceptance criteria` or `Criteria`
are the criteria; a code span in an item is the command that decides it. Fenced code and comments are not looked into.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from relay.errors import RelayError
from relay.host import files
from relay.record import strict
from relay.terms import Budget, Criterion, Must, Ship, Spec, Struct

PLACEHOLDER: Final = "Say what is wrong or wanted, where it shows, and what must stay as it is."
"""The sentence of the sample that a person replaces."""
LIMIT: Final = 1 << 20
"""Bytes of the largest spec: a task that needs more than 1 MB of words is several tasks."""

TITLE_LENGTH: Final = 120
DEEPEST: Final = 6
INDENT: Final = 3
"""CommonMark: the deepest heading, and the spaces that may stand before one."""

SECTION: Final = re.compile(r"(?:acceptance(?:\s+criteria)?|criteria)\s*:?", re.IGNORECASE)
FENCE: Final = re.compile(r"\s*(?:[-*+]\s+)?(`{3,}(?=[^`]*$)|~{3,})")
ITEM: Final = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(.*))?")
RULE: Final = re.compile(r"\s*([-*_])[ \t]*(?:\1[ \t]*){2,}")
BOX: Final = re.compile(r"\[[ xX]\](?:\s+|$)")
CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
COMMAND: Final = re.compile(r"(?:! +)?(?:[A-Za-z_]\w*=\S* +)*[\w./~+-]+ +(?!=)\S.*")
ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


class _Criterion(Struct, frozen=True, kw_only=True):
    text: str
    check: str | None = None
    id: str | None = None


class _FrontMatter(Struct, frozen=True, kw_only=True):
    title: str | None = None
    base: str | None = None
    phases: tuple[str, ...] | None = None
    budget: Budget | None = None
    criteria: tuple[_Criterion, ...] = ()
    must: tuple[Must | str, ...] = ()
    files: tuple[str, ...] = ()
    may_change_tests: bool = False
    ship: Ship | None = None


def read(path: Path) -> Spec:
    """Read a spec; a file that is missing, a folder, too large, empty or not text is a `RelayError` that names it."""
    hint = "give the path of a Markdown file: relay run tasks/fix-login.md"
    try:
        real = path.resolve(strict=True)
        if real.is_dir():
            raise RelayError(f"the spec `{path}` is a folder", hint=hint)
        if not real.is_file():
            raise RelayError(f"the spec `{path}` is not a plain file", hint=hint)
        size = real.stat().st_size
        if size > LIMIT:
            raise RelayError(f"the spec `{path}` has {size} bytes, the limit is {LIMIT}", hint="split the task")
        try:
            data = files.read(real, LIMIT)
        except RelayError as error:
            raise RelayError(error.message, hint=hint) from None
    except (FileNotFoundError, NotADirectoryError):
        raise RelayError(f"there is no spec `{path}`", hint=hint) from None
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise RelayError(f"the spec `{path}` cannot be read: {reason}", hint=hint) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise strict.refusal(str(path), f"the spec is not UTF-8, see byte {error.start}") from None
    if PLACEHOLDER in text:
        raise RelayError(f"the spec `{path}` is still the sample of `relay new`", hint="say in it what is wanted")
    return parse(text, str(path))


def parse(text: str, name: str) -> Spec:
    """Read the text of a spec; `name` is the file that errors name. The hash is that of the text in UTF-8."""
    if "\0" in text:
        raise strict.refusal(name, f"the spec has a NUL character at offset {text.index(chr(0))}")
    if not text.strip():
        raise strict.refusal(name, "the spec is empty", "write what is to be done, and an `## Acceptance` list")
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        raise strict.refusal(name, f"the spec is not UTF-8, see character {error.start}") from None
    if len(encoded) > LIMIT:
        raise strict.refusal(name, f"the spec has {len(encoded)} bytes, the limit is {LIMIT}", "split the task")
    head, body = _split(text, name)
    front = strict.toml(head.encode(), _FrontMatter, name)
    _check_front(front, name)
    return Spec(
        title=front.title.strip() if front.title else _title(body, name),
        text=text,
        sha256=files.sha256(encoded),
        criteria=_numbered((*front.criteria, *_listed(body)), name),
        must=tuple(Must(must=one) if isinstance(one, str) else one for one in front.must),
        base=front.base,
        phases=front.phases,
        budget=front.budget,
        ship=front.ship,
        files=front.files,
        may_change_tests=front.may_change_tests,
    )


def _split(text: str, name: str) -> tuple[str, str]:
    """Return the front matter and the body; a fence that is opened must be closed."""
    lines = _lines(text)
    if lines[0].rstrip() != "+++":
        return "", text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == "+++":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    raise strict.refusal(name, "the front matter that `+++` opens is never closed", "end it with a line `+++`")


def _check_front(front: _FrontMatter, name: str) -> None:
    if front.title is not None and (not front.title.strip() or "\n" in front.title.strip()):
        raise strict.refusal(name, "`title` must be one line")
    if front.phases is not None and not front.phases:
        raise strict.refusal(name, "`phases` is empty", 'leave it out, or name some: phases = ["implement", "review"]')
    if front.budget is not None:
        strict.amount(name, "budget.usd", front.budget.usd)
        strict.amount(name, "budget.minutes", front.budget.minutes)
        strict.amount(name, "budget.reserve", front.budget.reserve, least=0, most=0.9)
    strict.inside(name, "files", front.files)
    for number, one in enumerate(front.must):
        if not (one if isinstance(one, str) else one.must).strip():
            raise strict.refusal(name, f"`must[{number}]` is empty")
    for number, criterion in enumerate(front.criteria):
        if not criterion.text.strip():
            raise strict.refusal(name, f"`criteria[{number}].text` is empty")
        if criterion.check is not None and not criterion.check.strip():
            raise strict.refusal(name, f"`criteria[{number}].check` is empty", "leave it out, or write a command")
        if criterion.id is not None and not ID.fullmatch(criterion.id):
            raise strict.refusal(name, f"`criteria[{number}].id` is `{criterion.id}`", "use letters, digits, `-`, `_`")


def _numbered(criteria: Iterable[_Criterion], name: str) -> tuple[Criterion, ...]:
    """Give each criterion without an id the next free one of c1, c2, ..; an id given twice is refused."""
    given = list(criteria)
    used = [one.id for one in given if one.id is not None]
    for one in used:
        if used.count(one) > 1:
            raise strict.refusal(name, f"two criteria have the id `{one}`")
    free = (f"c{number}" for number in range(1, 2 * len(given) + 1) if f"c{number}" not in used)
    return tuple(Criterion(id=one.id or next(free), text=one.text.strip(), check=one.check) for one in given)


def _title(body: str, name: str) -> str:
    """Return the first heading with words in it, else the first line with any."""
    lines = list(_prose(body))
    headings = (words for depth, words in map(_heading, lines) if depth and words)
    title = next(headings, "") or next((line.strip() for line in lines if line.strip()), "")
    title = "".join(one for one in title if one.isprintable())
    if not title:
        raise strict.refusal(name, "the spec has no title", "start it with a line `# What is to be done`")
    return title[:TITLE_LENGTH]


def _lines(text: str) -> list[str]:
    """Return the lines without their ends; unlike `splitlines`, a form feed or U+2028 ends none."""
    return text.replace("\r\n", "\n").split("\n")


def _heading(line: str) -> tuple[int, str]:
    """Return depth and words of a `#` heading; the depth is 0 where the line is none."""
    words = line.strip()
    depth = len(words) - len(words.lstrip("#"))
    if not 1 <= depth <= DEEPEST or len(line) - len(line.lstrip()) > INDENT or words[depth : depth + 1].strip():
        return 0, ""
    words = words[depth:].strip()
    closed = words.rstrip("#")
    return depth, closed.rstrip() if not closed or closed[-1].isspace() else words


def _prose(body: str) -> Iterator[str]:
    """Yield the lines outside fenced code and HTML comments; what is left out counts as a blank line."""
    fence = ""
    comment = False
    for line in _lines(body):
        found = FENCE.match(line)
        if fence:
            closes = found and found[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
        elif comment or line.lstrip().startswith("<!--"):
            comment = "-->" not in line
        elif found:
            fence = found[1]
        else:
            yield line
            continue
        yield ""


def _listed(body: str) -> Iterator[_Criterion]:
    """Yield the criteria of every list below an acceptance heading, nested items each for itself."""
    items: list[list[str]] = []
    level = 0
    open_item = blank = False
    for line in _prose(body):
        depth, heading = _heading(line)
        item = ITEM.fullmatch(line)
        if depth:
            if not level or depth <= level:
                level = depth if depth > 1 and SECTION.fullmatch(heading) else 0
            open_item = False
        elif not level or RULE.fullmatch(line):
            open_item = False
        elif item:
            items.append([(item[1] or "").strip()])
            open_item = True
        elif not line.strip():
            blank = True
            continue
        elif open_item and (not blank or line[0] in " \t"):
            items[-1].append(line.strip())
        else:
            open_item = False
        blank = False
    for words in items:
        text = BOX.sub("", " ".join(words).strip(), count=1)
        if text.strip("` "):
            yield _Criterion(text=text, check=_command(text))


def _command(text: str) -> str | None:
    """Return the first code span that looks like a command with arguments, else the first one, else none."""
    spans = [found[2].strip() for found in CODE.finditer(text)]
    spans = [span for span in spans if span]
    return next((span for span in spans if COMMAND.fullmatch(span)), spans[0] if spans else None)
