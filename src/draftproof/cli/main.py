"""The ``draftproof`` command: its verbs, its exit codes, and how every error leaves it."""

import os
import sys
from collections.abc import Callable
from types import TracebackType

import typer

from draftproof import __version__
from draftproof.cli.output import emit_error, emit_json, line
from draftproof.cli.verbs import VERBS
from draftproof.errors import DraftproofError, UsageError

__all__ = ["app", "main"]

CLOSED_PIPE = 141  # 128 + SIGPIPE, as a shell reports a program that the signal ended

# typer has moved its call errors between modules (its own, click's, a vendored click); the public
# BadParameter is a subclass of all of them, so its ancestors name them in every version.
_CALL_ERRORS: tuple[type[Exception], ...] = tuple(
    kind for kind in typer.BadParameter.__mro__ if issubclass(kind, Exception) and kind is not Exception
)

app = typer.Typer(
    name="draftproof",
    help="Is this drafter what was meant, and if not, which layer lies?",
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> int:
    """Is this drafter what was meant, and if not, which layer lies?"""
    if version:
        line(f"draftproof {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")
        raise typer.Exit(UsageError.exit_code)
    return 0


for verb in VERBS:
    app.command(short_help=verb.short, epilog=verb.epilog)(verb.run)


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit status; errors of ours never leave a traceback."""
    args = sys.argv[1:] if argv is None else argv
    as_json = "--json" in args
    sys.excepthook = _fault_hook(as_json=as_json)
    try:
        # Calling the Typer object would replace the hook by its own; the command it stands for does not.
        command = typer.main.get_command(app)
        result = command.main(args=args, prog_name="draftproof", standalone_mode=False)
    except DraftproofError as error:
        emit_error(error, as_json=as_json)
        return error.exit_code
    except _CALL_ERRORS as error:
        emit_error(_usage(error, args), as_json=as_json)
        return UsageError.exit_code
    except BrokenPipeError:
        # The reader has seen enough (| head): neither a finding nor a fault; the rest goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except (typer.Abort, KeyboardInterrupt):
        line("interrupted; draftproof history shows any write that was begun", to_stderr=True)
        return 130
    return result if isinstance(result, int) else 0


def _usage(error: BaseException, args: list[str]) -> UsageError:
    context = getattr(error, "ctx", None)
    verb = next((word for word in args if word in {v.name for v in VERBS}), "")
    command = context.command_path if context else f"draftproof {verb}".strip()
    return UsageError(
        command,
        expected="a call as its help describes",
        found=_told(error),
        where="command line",
        means="nothing was read and nothing was done",
        next_step=f"{command} --help",
    )


def _told(error: BaseException) -> str:
    """What the call error says; a missing argument has its words in ``format_message`` alone."""
    formatted = getattr(error, "format_message", None)
    told = str(formatted() if callable(formatted) else error) or "no command"
    return told.replace("Value error, ", "")  # pydantic's words inside typer's


def _fault_hook(
    *, as_json: bool
) -> Callable[[type[BaseException], BaseException, TracebackType | None], None]:
    """A fault of our own ends with exit 10, which no caller can mistake for a finding."""

    def hook(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
        import traceback

        text = "".join(traceback.format_exception(kind, fault, trace))
        if as_json:
            emit_json({"schema": "draftproof.error/1", "error": {"id": "fault", "exit": 10, "found": text}})
        else:
            sys.stderr.write(f"draftproof {__version__}: a fault in draftproof itself\n{text}")
        sys.exit(10)

    return hook
