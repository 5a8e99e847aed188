"""`relay new NAME`: a spec to fill in."""

import os
from pathlib import PurePosixPath
from typing import Final

import click

from relay.commands import common
from relay.errors import Exit, RelayError
from relay.host import files, repository, term

SAMPLE: Final = """\
# {title}

{placeholder}
Whoever takes a leg knows nothing else of it.

## Acceptance

Each item is one criterion. Relay runs the command in it, which decides; one without a command is for a judge that
reads, so not for a command that only exits 0 or 1.

- The tests pass: `python3 -m pytest -q`
- It is described: `grep -q "WORD" README.md`
"""


@click.command("new")
@click.argument("name")
@common.everywhere
def command(name: str) -> int:
    """Write tasks/NAME.md, a spec to fill in; a file that is there already stays as it is."""
    from relay.record import freeze, spec

    repo = repository.discover(common.folder())
    if repo.top is None:
        raise RelayError("a bare repository has no checkout to write a spec into", hint="relay -C CHECKOUT new NAME")
    stem = name.removesuffix(".md")
    if not any(letter.isalnum() for letter in stem) or PurePosixPath(name).name != name or not name.isprintable():
        raise RelayError(f"`{name}` cannot be the name of a spec", hint="relay new fix-login")
    title = " ".join(stem.replace("-", " ").replace("_", " ").split())
    text = SAMPLE.format(title=title[:1].upper() + title[1:], placeholder=spec.PLACEHOLDER)
    short = f"tasks/{freeze.slug(f'{stem}.md')}.md"
    path = repo.top / short
    if os.path.lexists(path):
        raise RelayError(f"`{path}` is there already", hint=f"edit it, or choose another name; relay run {short}")
    spec.parse(text, short)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise RelayError(f"cannot make `{path.parent}`: {error.strerror}", exit_code=Exit.HUMAN) from None
    files.write(path, text.encode(), 0o644)
    term.event("spec", path=str(path))
    term.say(f"wrote `{path}`")
    term.hint(f"edit it, then: relay run {short}")
    return 0
