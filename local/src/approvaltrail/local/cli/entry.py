"""Runs a command and turns whatever went wrong into one message and one exit code."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer

from approvaltrail.local.cli.exit_codes import ExitCode
from approvaltrail.local.cli.text import safe
from approvaltrail.schemas.token_shape import without_tokens

DEBUG_VARIABLE: Final = "APPROVALTRAIL_DEBUG"
_WRITE_ERRORS: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
_UsageError: Final = typer.BadParameter.__mro__[1]
"""Typer's class of all that is wrong with a command line; it has no public name for it."""


def main() -> None:
    """Entry point of `approvaltrail`."""
    sys.exit(run(sys.argv[1:]))


class UnreadableArgumentError(Exception):
    """An argument is no text in UTF-8."""


def _check_output() -> None:
    if sys.stdout is None:
        raise OSError(errno.EBADF, "the output was closed by whoever called")


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
    as_json = "--json" in arguments
    # What keeps Kafka from being reached is told once, as this command's own error.
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())
    try:
        _check_output()
        _check_text(arguments)
        # Loading takes a moment: a Ctrl-C during it is to end quietly too.
        from approvaltrail.local.cli.app import app  # noqa: PLC0415

        # Typer would repeat a wrong argument as it is, which may be a token or escape sequences.
        ended = app(list(arguments) or ["--help"], prog_name="approvaltrail", standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as ended_by:
        if isinstance(ended_by.__context__, BrokenPipeError):  # rich and typer end so
            return _left()
        return ended_by.code if isinstance(ended_by.code, int) else ExitCode.OK
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted", ExitCode.INTERRUPTED, as_json=as_json)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return _left()
    except Exception as error:  # noqa: BLE001 - the last place that can turn it into a message
        return _failed(error, as_json=as_json)
    return ended if isinstance(ended, int) else ExitCode.OK


def _left() -> int:
    """End quietly: the reader of a pipe has seen enough."""
    _forget_output()
    return ExitCode.OK


def _forget_output() -> None:
    """Lead what is still to be flushed nowhere: it would fail again at the process's end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)


def _is_of_output(error: Exception) -> bool:
    """Whether writing to an open file failed: whatever else is written has an error of its own."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _WRITE_ERRORS


def _failed(error: Exception, *, as_json: bool) -> int:
    if isinstance(error, UnreadableArgumentError):
        _say(str(error), ExitCode.USAGE, as_json=as_json)
        return ExitCode.USAGE
    if isinstance(error, _UsageError):
        return _misused(error, as_json=as_json)
    from approvaltrail.local.cli.failures import code_of  # noqa: PLC0415 - loaded by now, or broken

    error = _sole(error)
    if _is_of_output(error):
        _forget_output()
        why = os.strerror(error.errno)  # type: ignore[attr-defined] # an OSError
        told = f"the answer cannot be written to the output ({why}): give it another place"
        _say(told, ExitCode.OUTPUT, as_json=as_json)
        return ExitCode.OUTPUT
    code = code_of(error)
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error)
    if code is not ExitCode.INTERNAL:
        retriable = bool(getattr(error, "retriable", False))
        _say(str(error), code, as_json=as_json, retriable=retriable)
        return code
    # The text of an unforeseen error may hold anything, a password too: say where, not what.
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    _say(
        f"internal fault: {type(error).__name__} at {place}; this is a bug: "
        f"run again with {DEBUG_VARIABLE}=1 for the whole story and report it",
        code,
        as_json=as_json,
    )
    return code


def _sole(error: Exception) -> Exception:
    """Return what went wrong in the one task that failed of a group."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _misused(error: Any, *, as_json: bool) -> int:
    message: str = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(message + "\n")
        return ExitCode.USAGE
    if error.ctx is not None and not as_json:
        message += f"\ntry: {error.ctx.command_path} --help"
    _say(message, ExitCode.USAGE, as_json=as_json)
    return ExitCode.USAGE


def _say(message: str, code: ExitCode, *, as_json: bool, retriable: bool = False) -> None:
    if sys.stderr is None:
        return
    told = without_tokens(message)
    if as_json:
        error = {"code": int(code), "name": code.name.lower(), "message": told}
        sys.stderr.write(json.dumps({"error": error | {"retriable": retriable}}) + "\n")
        return
    lines = [safe(line) for line in told.splitlines() or [""]]
    sys.stderr.write("error: " + "\n       ".join(lines) + "\n")
