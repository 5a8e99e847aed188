"""The command line: verbs that are imported when they are called, and errors that become exit codes."""

import os
import sys
from importlib import import_module
from typing import Final

import click

from relay import __version__
from relay.commands import common
from relay.errors import MEANING, Exit, Interrupted, RelayError
from relay.host import term

VERBS: Final = {
    "init": "write relay.toml, or show what is missing",
    "new": "write a spec to fill in",
    "run": "run a spec through its phases",
    "resume": "go on with a run",
    "status": "list the runs and what they need",
    "show": "show a run, or a leg: note, receipt, diff, prompt, log",
    "trace": "tell a run from its receipts",
    "verify": "check a run's hashes, notes and commits",
    "log": "show what an agent said",
    "note": "check a note, or make a lost one again",
    "approve": "ship an accepted run",
    "reject": "send an accepted run back, or close it",
    "answer": "answer what a run asks",
    "stop": "stop a run",
    "agents": "list the agents, or print the reply's schema",
    "doctor": "look whether everything is there",
    "demo": "see a whole relay, without a model",
}
"""Every verb and its line in the help, here so that the help imports none of them."""

EXIT_TABLE: Final = "\b\nExit codes:\n" + "\n".join(f"  {int(code):<3} {text}" for code, text in MEANING.items())


class _Verbs(click.Group):
    """The group of verbs; each is a module in `commands` that has a `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002, PLR6301 - click's own signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002, PLR6301 - as above
        if cmd_name not in VERBS:
            return None
        found: click.Command = import_module(f"relay.commands.{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002, PLR6301 - as above
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_Verbs, epilog=EXIT_TABLE, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="relay %(version)s")
@common.everywhere
def relay() -> None:
    """Pass one task through several coding agents, one at a time, and believe none of them."""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; everything that Relay can explain is one line and a hint."""
    try:
        result = relay.main(args=argv, prog_name="relay", standalone_mode=False)
    except RelayError as error:
        term.error(error)
        return int(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        term.data(error.format_message())
        return int(Exit.USAGE)
    except click.ClickException as error:
        hint = error.ctx.command_path + " --help" if isinstance(error, click.UsageError) and error.ctx else "relay --help"
        message = error.format_message().rstrip(".")
        term.error(RelayError(message[:1].lower() + message[1:], hint=hint))
        return int(Exit.USAGE)
    except (KeyboardInterrupt, click.Abort):
        return 130
    except Interrupted as interrupted:
        term.say("interrupted; nothing that was sealed is lost")
        term.hint("relay resume")
        return 128 + interrupted.signum
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:  # noqa: BLE001 - everything else is a bug, and says so
        return _bug(error, sys.argv[1:] if argv is None else argv)
    return result if isinstance(result, int) else 0


def _bug(error: Exception, argv: list[str]) -> int:
    """Write a report that can be pasted, and name it."""
    from relay import bug

    path = bug.report(error, argv)
    term.error(
        RelayError(
            f"this is a bug in relay: {type(error).__name__}: {str(error)[:200]}",
            hint=f"please send the report `{path}`; `relay resume` goes on from the last sealed leg",
            exit_code=Exit.BUG,
        )
    )
    return int(Exit.BUG)
