"""Run a program as a child that cannot outlive whoever started it.

Between this process and the program stands a small shim (`python -m approvaltrail.local.child`).
The shim holds one end of a pipe: when its owner ends, however it ended, the pipe closes and the
shim stops the program. Should the shim itself be killed, the kernel kills the program
(PR_SET_PDEATHSIG, Linux). A thread that ends does not count as the owner's end, so a child may be
started from a worker thread.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "PYTHONPATH")
LOG_LIMIT_BYTES = 16 << 20
_PR_SET_PDEATHSIG = 1
_SHIM_GIVES_UP_SECONDS = 5.0


class ChildError(RuntimeError):
    """A child process could not be started."""

    retriable: ClassVar[bool] = False


class Child:
    """A program behind the shim; `pid` is the program's own process id.

    Its output goes to `log` (appended; set aside as `<log>.1` once it passes 16 MiB), never to a
    pipe that nobody reads. Only the handful of variables in `KEPT_ENVIRONMENT` reach the program,
    plus `environment`: secrets of the owner stay with the owner. With `inherit_environment` all
    of the owner's variables reach it. It runs in `folder`, by default the owner's.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        inherit_environment: bool = False,
        grace_seconds: float = 10.0,
    ) -> None:
        self.command = tuple(command)
        self.log = log
        self._folder = folder
        self._environment = dict(environment or {})
        self._inherit_environment = inherit_environment
        self._grace_seconds = grace_seconds
        self._shim: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None

    @property
    def pid(self) -> int | None:
        """The program's process id, None before the first start."""
        return self._pid

    @property
    def running(self) -> bool:
        """Whether the program is alive."""
        return self._shim is not None and self._shim.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The program's exit code (128 + signal after a signal), None while it runs."""
        return None if self._shim is None else self._shim.poll()

    def start(self) -> None:
        """Start the program; raises ChildError when it cannot be run."""
        if self.running:
            raise ChildError(f"{self.command[0]} already runs as {self._pid}: stop it first")
        self._set_full_log_aside()
        with self.log.open("ab") as output:
            self._shim = subprocess.Popen(  # noqa: S603 - built by our own code
                self._shim_command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**os.environ, **self._environment},
            )
        first_line = _stream(self._shim.stdout).readline()
        _stream(self._shim.stdout).close()
        if not first_line.strip().isdigit():
            self.wait()
            raise ChildError(f"cannot run {self.command[0]}: see {self.log}\n{self.log_tail()}")
        self._pid = int(first_line)

    def stop(self, timeout_seconds: float = 20.0) -> int | None:
        """Ask the program to end (SIGTERM), kill it when it has not after the time; exit code."""
        if self._shim is None:
            return None
        self._signal(signal.SIGTERM)
        return self.wait(timeout_seconds)

    def kill(self) -> int | None:
        """End the program at once (SIGKILL) and wait until it is gone; exit code."""
        if self._shim is None:
            return None
        self._signal(signal.SIGUSR1)
        return self.wait(_SHIM_GIVES_UP_SECONDS)

    def request_stop(self) -> None:
        """Send SIGTERM and return at once, for those who stop several children together."""
        self._signal(signal.SIGTERM)

    def wait(self, timeout_seconds: float = _SHIM_GIVES_UP_SECONDS) -> int | None:
        """Wait for the end; past the time the program is killed. Returns the exit code."""
        if self._shim is None:
            return None
        try:
            return self._shim.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGUSR1)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._shim.wait(_SHIM_GIVES_UP_SECONDS)
            self._shim.kill()  # the kernel then kills the program
            return self._shim.wait()
        finally:
            _stream(self._shim.stdin).close()

    def log_tail(self, limit_bytes: int = 2000) -> str:
        """Return the end of what the program has written."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - limit_bytes))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _signal(self, number: signal.Signals) -> None:
        # Signals go to the shim, our own child, so they can never reach a recycled process id.
        if self._shim is not None and self._shim.poll() is None:
            self._shim.send_signal(number)

    def _shim_command(self) -> list[str]:
        shim = [sys.executable, "-m", "approvaltrail.local.child"]
        shim += ["--grace-seconds", str(self._grace_seconds)]
        if self._inherit_environment:
            shim.append("--inherit-environment")
        if self._folder is not None:
            shim += ["--folder", os.fspath(self._folder)]
        for name in self._environment:  # names alone: everybody can read a command line
            shim += ["--keep", name]
        return [*shim, "--", *self.command]

    def _set_full_log_aside(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT_BYTES:
            self.log.replace(self.log.with_name(self.log.name + ".1"))


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:  # Popen was given PIPE for both
        raise ChildError("the shim has no pipe to its owner")
    return stream


def _die_with(shim_pid: int) -> None:
    """Run in the forked program before exec: let the kernel kill it when the shim dies."""
    with contextlib.suppress(AttributeError, OSError):  # not Linux: the pipe remains
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != shim_pid:  # it died before the call above
        os._exit(1)


def _stop_when_owner_is_gone(program: subprocess.Popen[bytes], grace_seconds: float) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    program.terminate()
    try:
        program.wait(grace_seconds)
    except subprocess.TimeoutExpired:
        program.kill()


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="approvaltrail.local.child", description=__doc__)
    parser.add_argument("--grace-seconds", type=float, default=10.0)
    parser.add_argument("--inherit-environment", action="store_true")
    parser.add_argument("--folder")
    parser.add_argument("--keep", action="append", default=[], metavar="NAME")
    parser.add_argument("command", nargs="+")
    return parser.parse_args(argv)


def _environment(arguments: argparse.Namespace) -> dict[str, str]:
    names = {*KEPT_ENVIRONMENT, *arguments.keep}
    return {
        name: value
        for name, value in os.environ.items()
        if arguments.inherit_environment or name in names
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the shim: start the program, print its process id, return its exit code."""
    arguments = _arguments(argv)
    for ignored in (signal.SIGINT, signal.SIGHUP):  # the terminal's signals are the owner's matter
        signal.signal(ignored, signal.SIG_IGN)
    shim_pid = os.getpid()
    program = subprocess.Popen(  # noqa: S603 - the owner's own command
        arguments.command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        env=_environment(arguments),
        cwd=arguments.folder,
        start_new_session=True,
        preexec_fn=lambda: _die_with(shim_pid),  # noqa: PLW1509 - no thread runs yet
    )
    signal.signal(signal.SIGTERM, lambda *_: program.terminate())
    signal.signal(signal.SIGUSR1, lambda *_: program.kill())
    os.write(sys.stdout.fileno(), f"{program.pid}\n".encode())
    os.close(sys.stdout.fileno())
    watcher = threading.Thread(
        target=_stop_when_owner_is_gone, args=(program, arguments.grace_seconds), daemon=True
    )
    watcher.start()
    code = program.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main())  # the watcher may sit in a read: do not wait for it
