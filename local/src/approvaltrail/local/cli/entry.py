"""Runs a command and turns whatever went wrong into one message and one exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.text import safe

DEBUG_VARIABLE = "APPROVALTRAIL_DEBUG"


def main() -> None:
    """Entry point of `approvaltrail`."""
    sys.exit(run(sys.argv[1:]))


class UnreadableArgumentError(Exception):
    """An argument is no text in UTF-8."""


def _check_text(arguments: Sequence[str]) -> None:
    for place, argument in enumerate(arguments, start=1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UnreadableArgumentError(
                f"argument {place} is not text in UTF-8: give it as the page or an event shows it"
            ) from None


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; never raises."""
    try:
        _check_text(arguments)
        # Loading takes a moment: a Ctrl-C during it is to end quietly too.
        from approvaltrail.local.cli.app import app  # noqa: PLC0415

        app(list(arguments) or ["--help"], prog_name="approvaltrail")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else ExitCode.OK
    except UnreadableArgumentError as error:
        _say(str(error))
        return ExitCode.USAGE
    except KeyboardInterrupt:
        _say("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception as error:  # noqa: BLE001 - the last place that can turn it into a message
        return _failed(error)
    return ExitCode.OK


def _failed(error: Exception) -> ExitCode:
    from approvaltrail.local.cli.failures import code_of  # noqa: PLC0415 - loaded by now, or broken

    code = code_of(error)
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    if code is not ExitCode.INTERNAL:
        _say(str(error))
        return code
    # The text of an unforeseen error may hold anything, a password too: say where, not what.
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    _say(
        f"internal fault: {type(error).__name__} at {place}; this is a bug: "
        f"run again with {DEBUG_VARIABLE}=1 for the whole story and report it"
    )
    return code


def _say(message: str) -> None:
    lines = [safe(line) for line in message.splitlines() or [""]]
    sys.stderr.write("error: " + "\n       ".join(lines) + "\n")
