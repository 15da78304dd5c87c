"""Real database servers for the SQL ledgers: Debian's MariaDB and PostgreSQL, started by hand.

Each runs from a temporary folder on a free loopback port, as an ordinary user, and ends with the
test run. A server that cannot run here skips its tests with the reason, and fails them under
`CI=true`.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine
from tests.gate.certificates import make_certificates
from tests.support.processes import wait_until

from approvaltrail.local.child import Child

PASSWORD = "a p@ss/word: of tests"
QUOTED = "a%20p%40ss%2Fword%3A%20of%20tests"
DRIVERS = {"mysql": "mysql+pymysql", "postgresql": "postgresql+pg8000"}
ROOM_BYTES = 1 << 30
USERS = {"mysql": "mysql", "postgresql": "postgres"}


class MissingServerError(RuntimeError):
    """The server's programs are not installed, or do not run."""


@dataclass(frozen=True, kw_only=True)
class SqlDatabase:
    """A fresh database and the ordinary user who owns it."""

    server: SqlServer
    name: str

    @property
    def dsn(self) -> str:
        """Return the DSN of the ordinary user."""
        return self._dsn(self.server.port)

    def dsn_by(self, port: int) -> str:
        """Return the DSN by another port, behind which something stands and must see all."""
        return self._dsn(port) + "?sslmode=disable"

    def _dsn(self, port: int) -> str:
        return f"{self.server.family}://{self.name}:{QUOTED}@127.0.0.1:{port}/{self.name}"

    def run(self, *statements: str) -> list[Any]:
        """Run statements in this database as the administrator; return the last one's rows."""
        return self.server.run(*statements, database=self.name)


@dataclass(kw_only=True)
class SqlServer:
    """A running server."""

    family: str
    port: int
    child: Child
    authority: Path
    """The certificate of the authority that signed the server's."""

    def run(self, *statements: str, database: str | None = None) -> list[Any]:
        """Run statements as the administrator; return the last one's rows."""
        home = database or {"mysql": "mysql", "postgresql": "postgres"}[self.family]
        url = f"{DRIVERS[self.family]}://admin:{QUOTED}@127.0.0.1:{self.port}/{home}"
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        rows: list[Any] = []
        try:
            with engine.connect() as connection:
                for statement in statements:
                    result = connection.exec_driver_sql(statement)
                    rows = list(result) if result.returns_rows else []
        finally:
            engine.dispose()
        return rows

    def fresh(self) -> SqlDatabase:
        """Make a database and its user."""
        name = f"gate_{secrets.token_hex(4)}"
        if self.family == "mysql":
            self.run(
                f"CREATE DATABASE {name}",
                f"CREATE USER {name}@'%%' IDENTIFIED BY '{PASSWORD}'",
                f"GRANT ALL ON {name}.* TO {name}@'%%'",
            )
        else:
            self.run(
                f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'",
                f"CREATE DATABASE {name} OWNER {name}",
            )
        return SqlDatabase(server=self, name=name)

    def drop(self, database: SqlDatabase) -> None:
        """Drop what `fresh` made."""
        name = database.name
        if self.family == "mysql":
            self.run(f"DROP DATABASE {name}", f"DROP USER {name}@'%%'")
        else:
            self.run(f"DROP DATABASE {name} WITH (FORCE)", f"DROP ROLE {name}")

    def answers(self) -> bool:
        """Say whether it takes connections."""
        try:
            self.run("SELECT 1")
        except Exception:  # noqa: BLE001 - whatever a server that starts says
            if not self.child.running:
                raise MissingServerError(self.child.log_tail()) from None
            return False
        return True


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def program(name: str) -> str:
    """Return the path of a server's program, which Debian keeps out of PATH."""
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    folders = [*os.environ.get("PATH", "").split(":"), "/usr/sbin", *map(str, newest)]
    found = shutil.which(name, path=":".join(folders))
    if found is None:
        raise MissingServerError(f"no program {name}; install mariadb-server and postgresql")
    return found


@contextmanager
def sql_server(family: str) -> Iterator[SqlServer]:
    """Run a server as long as the context lasts."""
    folder = Path(tempfile.mkdtemp(prefix=f"gate-{family}-", dir=roomy_memory()))
    make_certificates(folder)
    as_user: list[str] = []
    if os.geteuid() == 0:
        user = USERS[family]
        try:
            pwd.getpwnam(user)
        except KeyError:
            raise MissingServerError(f"no user {user}; install the server's package") from None
        for path in (folder, folder / "server.key"):
            shutil.chown(path, user, user)
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
    server = None
    try:
        port = free_port()
        make, serve = (_mariadb if family == "mysql" else _postgresql)(folder, port)
        done = subprocess.run(
            [*as_user, *make], capture_output=True, timeout=90, cwd=folder, check=False
        )
        if done.returncode != 0:
            raise MissingServerError(done.stderr.decode(errors="replace")[-2_000:])
        child = Child(
            [*as_user, "--pdeathsig=TERM", *serve] if as_user else serve,
            log=folder / "server.log",
            grace_seconds=3,
        )
        server = SqlServer(family=family, port=port, child=child, authority=folder / "ca.pem")
        child.start()
        wait_until(server.answers, f"{family} answers", 60)
        yield server
    finally:
        if server is not None:
            server.child.stop(5)
        shutil.rmtree(folder, ignore_errors=True)


def roomy_memory() -> str | None:
    """Return a folder in memory, where syncing costs nothing, if it has room for a server."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > ROOM_BYTES
    return str(memory) if roomy else None


def _mariadb(folder: Path, port: int) -> tuple[list[str], list[str]]:
    data, users = folder / "data", folder / "users.sql"
    users.write_text(
        f"CREATE USER IF NOT EXISTS admin@'%' IDENTIFIED BY '{PASSWORD}';\n"
        "GRANT ALL ON *.* TO admin@'%' WITH GRANT OPTION;\n"
    )
    users.chmod(0o644)
    make = [program("mariadb-install-db"), "--no-defaults", f"--datadir={data}"]
    make += ["--skip-test-db", "--auth-root-authentication-method=normal"]
    serve = [program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--port={port}"]
    serve += [f"--socket={folder}/s", "--bind-address=127.0.0.1", "--skip-name-resolve"]
    serve += [
        "--innodb-buffer-pool-size=32M",
        "--innodb-log-file-size=16M",
        f"--init-file={users}",
        "--max-connections=200",
    ]
    serve += [f"--ssl-cert={folder}/server.pem", f"--ssl-key={folder}/server.key"]
    return make, serve


def _postgresql(folder: Path, port: int) -> tuple[list[str], list[str]]:
    data, password = folder / "data", folder / "password"
    password.write_text(PASSWORD)
    password.chmod(0o644)
    make = [program("initdb"), "-D", str(data), "-U", "admin", f"--pwfile={password}", "--no-sync"]
    make += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"]
    serve = [program("postgres"), "-D", str(data), "-p", str(port), "-k", str(folder)]
    serve += ["-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=32MB"]
    serve += ["-c", "ssl=on", "-c", f"ssl_cert_file={folder}/server.pem"]
    serve += ["-c", f"ssl_key_file={folder}/server.key"]
    return make, serve
