"""MariaDB servers for the SQL tests, each a process of its own in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pymysql
import pytest

_SECONDS = 45.0
PASSWORD = "a password for tests alone"


@dataclass(frozen=True)
class MariaDb:
    """A server, whose users all carry its prefix."""

    port: int
    prefix: str

    @property
    def reader(self) -> str:
        """A user that may read the database `shop`."""
        return f"{self.prefix}.reader"


def program(name: str) -> str:
    """Return a program's path; skip where it is not installed, and fail on CI."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/libexec")
    if found is None:
        reason = f"{name} is not installed (Debian: mariadb-server)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextlib.contextmanager
def mariadb(prefix: str) -> Iterator[MariaDb]:
    """Run a server with a database, two rows, and users under this prefix."""
    daemon = program("mariadbd")
    with tempfile.TemporaryDirectory() as folder:
        data, port = Path(folder) / "data", _free_port()
        subprocess.run(
            [program("mariadb-install-db"), f"--datadir={data}", "--skip-test-db",
             "--auth-root-authentication-method=normal", *_as_root()],
            check=True, capture_output=True, timeout=_SECONDS,
        )  # fmt: skip
        options = [
            "--no-defaults", f"--datadir={data}", f"--port={port}", f"--socket={folder}/s",
            "--bind-address=127.0.0.1", "--skip-log-bin", "--skip-name-resolve",
            "--innodb-buffer-pool-size=16M", *_as_root(),
        ]  # fmt: skip
        process = subprocess.Popen(
            [daemon, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _fill(f"{folder}/s", prefix)
            yield MariaDb(port=port, prefix=prefix)
        finally:
            process.terminate()
            process.wait(timeout=_SECONDS)


def _as_root() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


def _fill(path: str, prefix: str) -> None:
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            connection = pymysql.connect(unix_socket=path, user="root", autocommit=True)
            break
        except pymysql.MySQLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("CREATE TABLE shop.orders (id INT PRIMARY KEY, customer VARCHAR(32))")
        cursor.execute("INSERT INTO shop.orders VALUES (1, 'ana'), (2, 'o''brien')")
        for user, rights in (("reader", "SELECT"), ("writer", "ALL")):
            name = f"'{prefix}.{user}'@'%'"
            cursor.execute(f"CREATE USER {name} IDENTIFIED BY '{PASSWORD}'")
            cursor.execute(f"GRANT {rights} ON shop.* TO {name}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
