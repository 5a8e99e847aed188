"""A prompt: a template frozen at the start of the run, filled with what one leg may know.

Agents' and repositories' texts are values here, never templates: what looks like `{{ .. }}` inside them stays as it is.
A template runs in a sandbox, and one that asks for a value it was not given is refused instead of printing nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from relay.errors import RelayError

if TYPE_CHECKING:
    import jinja2

NAMES: Final = frozenset(
    {
        "because",  # why this leg runs, in a few words
        "boundary",  # "implement" or "verify-only"
        "changed",  # of {path, added, removed}: what differs between the base and the head
        "checks",  # of {by, command, exit, output}: what Relay ran on the commit the leg starts from
        "criteria",  # of {id, text, check}; check is None where no command decides
        "diff",  # text, made by Relay from two commits; empty where the leg is not shown one, or gets it as files
        "diff_files",  # of {path, size, file}: where a diff too long for the prompt stands, a file for each path
        "document",  # the text of a document handed over, a plan for instance; empty where there is none
        "findings",  # of {id, severity, path, line, title}, and where known {why, quote, evidence, repro, dispute}
        "instructions",  # of {path, text}: the project's own instruction files, from the base commit
        "kept_back",  # folders of the base with skills and the like, which are not passed on
        "must",  # of {must, prerequisite, authority, fallback, consequence}, or text
        "must_from_person",  # of text: what a person demanded during the run
        "nested",  # commands that show instructions for one folder, as they are at the base
        "nonce",  # the leg's own; it also closes the blocks of data, so that no text inside can
        "notes",  # of {leg, text}: the notes of the phases this one reads
        "phase",  # its name
        "questions",  # of {question, answer}
        "recovery",  # of {command, output, at}: fresh output of the recovery steps
        "reply_path",  # the file for the reply; empty where the backend takes it in another way
        "reply_schema",  # JSON text
        "round",  # from 1
        "standing",  # of {id, met, by}: how the criteria stand, as far as Relay could tell
        "steering",  # of {why, paths}: what of the change steers tools, CI or later runs
        "task",  # the text of the spec
        "tests",  # what swapping the tests showed: a receipt's `tests`, and {removed, skips, diff}; None where not done
        "title",  # the spec's
        "turn",  # from 1
    }
)
"""What a template may use. Where a field is optional, templates say `is defined`.

The filter `line` folds a text into one line, so that a file's name or a title cannot look like a part of the prompt.
"""


def check(template: bytes, where: str) -> None:
    """Refuse a template that is wrong, or asks for a value that no leg is given, before anything is spent."""
    from jinja2 import meta

    with _explained(where):
        _compiled(template)
        unknown = meta.find_undeclared_variables(_environment().parse(template.decode("utf-8-sig"))) - NAMES
    if unknown:
        raise RelayError(f"{where} asks for `{min(unknown)}`, which no leg is given", hint=_known())


def render(template: bytes, **values: object) -> str:
    """Fill a template; a wrong template or a missing value is a `RelayError` that names the phase and what is wrong."""
    with _explained(f"the prompt of phase `{values.get('phase', '?')}`"):
        text = _compiled(template).render(values)
    # A NUL would end the text for whoever hands it on as an argument or a C string (pitfalls row 25).
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


@lru_cache(maxsize=16)
def _compiled(template: bytes) -> "jinja2.Template":
    return _environment().from_string(template.decode("utf-8-sig"))


def _environment() -> "jinja2.Environment":
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # the reader is a model, not a browser
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["line"] = lambda value: " ".join(str(value).split())
    return environment


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """Turn whatever a template can be wrong in into a `RelayError` about `where`."""
    import jinja2

    try:
        yield
    except UnicodeDecodeError as error:
        raise RelayError(f"{where} is not UTF-8, see byte {error.start}", hint="save it as UTF-8") from None
    except jinja2.TemplateSyntaxError as error:
        problem = f"{where} is wrong at line {error.lineno}: {error.message}"
        raise RelayError(problem, hint="templates are Jinja") from None
    except jinja2.TemplateError as error:
        raise RelayError(f"{where} cannot be filled: {error.message}", hint=_known()) from None
    except (ArithmeticError, AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise RelayError(f"{where} cannot be filled: {error}", hint="mend the template") from None


def _known() -> str:
    return f"templates know: {', '.join(sorted(NAMES))}"
