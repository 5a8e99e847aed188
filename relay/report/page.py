"""The page: one HTML file about a night, a run or the ledger, that asks nothing of a network and runs nothing.

What agents wrote is data: every value goes through `_shown`, and then Jinja escapes it. Were that ever to fail, the
page's own policy allows no script, no image, no frame, no form, and no style but the one whose hash it names.
"""

import base64
import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from relay import __version__, aftermath
from relay.host import redact, term
from relay.record import ledger as ledgers
from relay.record.ledger import Ledger
from relay.report import columns, figures, lines, morning, sheet
from relay.report import run as runs
from relay.report import stats as counting
from relay.report.morning import Morning
from relay.report.stats import Stats
from relay.terms import Night

if TYPE_CHECKING:
    from importlib.abc import Traversable

    import jinja2

LONGEST: Final = 20_000
"""Characters of one value that are shown: twice a note, and nothing else is meant to be longer."""

POLICY: Final = "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"

_UNSEEN: Final = re.compile(f"[{figures.UNSEEN}]")
"""Letters that are shown by their numbers wherever they stand; in a path so are controls, which elsewhere vanish."""


def night(ledger: Ledger, night: Night) -> str:
    """Write the page of a night: what needs a person, then each run, then what all runs came to."""
    told = morning.of_night(ledger, night, morning.elsewhere(ledger))
    return _written(ledger, told, counting.count(ledger, ledgers.runs(ledger)))


def run(ledger: Ledger, run: str) -> str:
    """Write the page of one run."""
    return _written(ledger, morning.of_run(ledger, run, morning.elsewhere(ledger)), None)


def stats(ledger: Ledger, counted: Stats) -> str:
    """Write the page of what all runs came to."""
    drawn, at = columns.draw(counted.accounts), morning.elsewhere(ledger)
    return _rendered("stats.html", place=_place(ledger), counted=counted, columns=drawn, at=at)


def _written(ledger: Ledger, told: Morning, counted: Stats | None) -> str:
    return _rendered(
        "morning.html",
        place=_place(ledger),
        told=told,
        summary=morning.summary(told),
        when=morning.when(told.night) if told.night is not None else "",
        asof=lines.asof(told),
        sheets={one.run: sheet.of(ledger, one) for one in told.accounts},
        at=morning.elsewhere(ledger),
        counted=counted,
        columns=columns.draw(counted.accounts) if counted is not None else None,
        shown=aftermath.SOME,
    )


def _place(ledger: Ledger) -> str:
    """Name the repository."""
    return str((ledger.repo.main_top or ledger.repo.common).name)


def _rendered(template: str, **values: object) -> str:
    """Fill a template of the folder `pages`."""
    import markupsafe

    css = _shipped("page.css").replace("\r\n", "\n")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    style, policy = markupsafe.Markup(css), markupsafe.Markup(POLICY.format(digest=digest))  # noqa: S704 - Relay's own
    return _environment().get_template(template).render(style=style, policy=policy, version=__version__, **values)


@lru_cache(maxsize=1)
def _environment() -> "jinja2.Environment":
    import jinja2

    made = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_shipped),
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"named": figures.named, "coded": _coded}
    made.globals |= {"figures": figures, "count": runs.count, "percent": counting.percent}
    return made


def _shown(value: Any) -> Any:  # noqa: ANN401 - whatever a template prints
    """Return a value as it may stand on the page: without secrets and controls, and no longer than people read."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    cut = len(value) - LONGEST
    text = value[:LONGEST] + f" [cut: {cut} more characters]" if cut > 0 else value
    text = _UNSEEN.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)
    return redact.own().text(term.plain(text))  # last, since a control could stand inside a secret


def _coded(text: str) -> Any:  # noqa: ANN401 - as above
    """Set what stands in backticks in a text of Relay's as code; where they do not pair, the text is as it is."""
    import markupsafe

    parts = str(_shown(text)).split("`")
    if len(parts) % 2 == 0:
        return text
    pieces = (
        markupsafe.Markup("<code>{}</code>").format(part) if at % 2 else markupsafe.escape(part)
        for at, part in enumerate(parts)
    )
    return markupsafe.Markup().join(pieces)


def _shipped(name: str) -> str:
    """Return a file of the folder `pages`: of the installed package, else of the checkout."""
    return (_pages() / name).read_text(encoding="utf-8")


def _pages() -> "Traversable":
    from importlib import resources
    from pathlib import Path

    packed = resources.files("relay") / "_builtin" / "pages"
    return packed if packed.is_dir() else Path(__file__).parents[2] / "pages"
