"""The exit codes of `approvaltrail`, one meaning each, the same for every command."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a finished command says to the script that called it."""

    OK = 0
    FAILED_CHECK = 1
    """A check did not hold: a condition of `smoke`, a finding of `doctor`, a re-drive that left
    something behind."""
    USAGE = 2
    """The command line is wrong: an unknown option, a time that is none."""
    SETTINGS = 3
    """A setting has no usable value, or the data folder cannot be used."""
    UNAVAILABLE = 4
    """The store, the broker or a part cannot be reached or started."""
    ALREADY_RUNNING = 5
    """Another `up` holds the data folder."""
    NOTHING_FOUND = 6
    """Nothing is known of the nonce or producer that was named."""
    INCOMPLETE = 7
    """The answer is not proven complete, and `--require-complete` was given."""
    OUTPUT = 74
    """The answer could not be written to where the output leads."""
    INTERNAL = 70
    """A fault of the program itself; please report it."""
    INTERRUPTED = 130
    """Ctrl-C ended a command that was to run to its end."""
