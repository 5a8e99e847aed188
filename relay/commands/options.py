"""The options that hold everywhere, before the verb or after it; the help imports nothing more than this."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from relay.host import term

if TYPE_CHECKING:
    from pathlib import Path

KEPT: Final = "relay.everywhere"


class Group(click.Group):
    """A verb with verbs of its own: its help says the whole first sentence of each, which click would cut."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(limit=1000)) for name, one in found if one is not None])


def everywhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-C`, `-q`, `-v` and `--json`: before the verb or after it, they mean the same."""
    for decorate in (
        click.option(
            "--json", "as_json", is_flag=True, expose_value=False, callback=_keep, help="JSON lines on stdout."
        ),
        click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=_keep, help="Say more."),
        click.option(
            "-q", "--quiet", is_flag=True, expose_value=False, callback=_keep, help="Say only what went wrong."
        ),
        click.option("-C", "folder", metavar="DIR", expose_value=False, callback=_keep, help="Work in DIR."),
    ):
        function = decorate(function)
    return function


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Remember an option wherever it stood, and set the terminal by it."""
    kept: dict[str, object] = context.meta.setdefault(KEPT, {})
    if value:
        kept[parameter.name or ""] = value
    term.configure(quiet=bool(kept.get("quiet")), verbose=bool(kept.get("verbose")), json=bool(kept.get("as_json")))


def folder() -> "Path":
    """Return the folder that `-C` names, else the one Relay was called in."""
    from pathlib import Path

    kept = click.get_current_context().meta.get(KEPT, {})
    return Path(str(kept.get("folder", ".")))


def as_json() -> bool:
    """Tell whether `--json` was given."""
    return bool(click.get_current_context().meta.get(KEPT, {}).get("as_json"))
