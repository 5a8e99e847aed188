"""The command line: verbs that are imported when they are called, and errors that become exit codes."""

import os
import sys
from importlib import import_module
from typing import Final

import click

from relay import __version__
from relay.commands import options
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
    "queue": "line up specs for the nights",
    "nightly": "resume what waits, then take the queue, within a purse",
    "schedule": "let this machine start the nights",
    "reap": "repair what nobody owns any more, or raise it",
    "report": "write the page of a night or a run",
    "stats": "count over all runs: rounds, time, money, findings",
    "agents": "list the agents, or print the reply's schema",
    "doctor": "look whether everything is there",
    "demo": "see a whole relay, without a model",
}
"""Every verb and its line in the help, here so that the help imports none of them."""

SIGINT: Final = 130
"""The exit of a program that Ctrl-C ended, by the shell's custom."""

EXIT_TABLE: Final = "\b\nExit codes:\n" + "\n".join(f"  {int(code):<3} {text}" for code, text in MEANING.items())


class _Verbs(click.Group):
    """The group of verbs; each is a module in `commands` that has a `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        if cmd_name not in VERBS:
            return None
        found: click.Command = import_module(f"relay.commands.{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=_Verbs, epilog=EXIT_TABLE, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="relay %(version)s")
@options.everywhere
@click.pass_context
def relay(context: click.Context) -> int:
    """Pass one task through several coding agents, one at a time, and believe none of them."""
    if context.invoked_subcommand is None:
        term.data(context.get_help())
    return int(Exit.USAGE)


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; everything that Relay can explain is one line and a hint."""
    try:
        result = relay.main(args=argv, prog_name="relay", standalone_mode=False)
    except Interrupted as interrupted:
        term.say("interrupted; nothing that was sealed is lost")
        term.hint(f"relay resume {interrupted.run}".rstrip())
        return 128 + interrupted.signum
    except (KeyboardInterrupt, click.Abort):
        return SIGINT
    except click.exceptions.NoArgsIsHelpError as error:  # `relay queue`: the help is what was asked for
        term.data(error.format_message())
        return int(Exit.USAGE)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return int(Exit.OK)
    except Exception as error:  # noqa: BLE001 - what nobody explains is a bug, and says so
        problem = _explained(error) or _bug(error, sys.argv[1:] if argv is None else argv)
        term.error(problem)
        return int(problem.exit_code)
    return result if isinstance(result, int) else int(Exit.OK)


def _explained(error: Exception) -> RelayError | None:
    """Return what a person is told of an error that has an explanation."""
    if isinstance(error, RelayError):
        return error
    if not isinstance(error, click.ClickException):
        return None
    from difflib import get_close_matches

    named = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "relay"
    message = error.format_message().rstrip(".")
    if message.startswith("No such command"):
        near = get_close_matches(message.split("'")[1], VERBS, n=1)
        message += f", did you mean `{near[0]}`?" if near else ""
    return RelayError(message[:1].lower() + message[1:], hint=f"{named} --help")


def _bug(error: Exception, argv: list[str]) -> RelayError:
    """Write a report that can be pasted, and name it."""
    from relay import bug

    return RelayError(
        f"this is a bug in relay: {type(error).__name__}: {str(error)[:200]}",
        hint=f"please send the report `{bug.report(error, argv)}`; `relay resume` goes on from the last sealed leg",
        exit_code=Exit.BUG,
    )
