"""The ``analysis`` command group, and the one place where errors become exit codes."""

import importlib
import sys

import click

from analysis.errors import InputError

COMMANDS = {
    "breakeven": "the commit length above which speculation pays",
    "compare": "what changed between two sides: step or commit?",
    "diagnose": "split throughput into commit and step, from a server's log",
    "cite": "snippets to cite a figure",
    "fit": "fit a step-time line to two columns of a table",
    "kv": "KV cache bytes per token and GPU, and what fits",
    "levers": "rank what would make a server faster, at a context",
    "measure": "measure a server: the embedded one, or yours",
    "plan-context": "plan another context limit for a unit or script",
    "promote": "copy a finished run into data/runs",
    "reconcile": "does commit over step give the observed throughput?",
    "report": "run the notebooks, rebuild the figures and the pages",
    "status": "which figures are stale, and which input changed",
    "verify-context": "wait for a server: does it serve the wished context?",
}
BAD_INPUT = 2
INTERRUPTED = 130


class LazyGroup(click.Group):
    """Imports a command only when it is called, so that none waits for another's libraries."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command of that name."""
        if name not in COMMANDS:
            return None
        module = name.replace("-", "_")
        command = getattr(importlib.import_module(f"analysis.cli.{module}"), module)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def analysis() -> None:
    """Why is my speculative decoding this fast, and what will it do next?"""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input ends with one line on standard error and exit code 2."""
    try:
        code = analysis.main(arguments, prog_name="analysis", standalone_mode=False)
    except InputError as error:
        _stop(f"error: {error}", BAD_INPUT)
    except click.exceptions.NoArgsIsHelpError as error:
        _stop(error.format_message(), BAD_INPUT)
    except click.UsageError as error:
        _stop(f"error: {' '.join(error.format_message().split())}", BAD_INPUT)
    except (click.Abort, KeyboardInterrupt):
        _stop("interrupted", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _stop(message: str, code: int) -> None:
    click.echo(message, err=True)
    sys.exit(code)
