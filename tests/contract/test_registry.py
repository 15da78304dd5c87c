"""What is asked of a schema registry, and how its settings are read."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from tests.gate.certificates import make_certificates

from approvaltrail.schemas.contract import event_contract
from approvaltrail.schemas.errors import (
    RegistryRefusedError,
    RegistryUnavailableError,
    SettingsError,
)
from approvaltrail.schemas.registry import Registry
from approvaltrail.schemas.registry_settings import RegistrySettings

if TYPE_CHECKING:
    from pathlib import Path

USER, PASSWORD = "trail", "a password, not shown"  # a registry of this test alone


class Answers(BaseHTTPRequestHandler):
    """Answers every question alike."""

    status: ClassVar[int] = 200
    body: ClassVar[bytes] = b"{}"
    seen: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Write nothing."""

    def _answer(self) -> None:
        self.seen.append((self.path, self.headers["Authorization"]))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)


class Serving:
    """A server whose answers a test decides."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.answers = type("Answers", (Answers,), {"seen": []})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self.answers)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def say(self, status: int, body: Any) -> None:
        self.answers.status = status
        self.answers.body = body if isinstance(body, bytes) else json.dumps(body).encode()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def serving() -> Iterator[Serving]:
    server = Serving()
    yield server
    server.stop()


def registry(serving: Serving, **values: Any) -> Registry:
    url = f"http://127.0.0.1:{serving.port}"
    return Registry(RegistrySettings(schema_registry_url=url, **values))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b"<html>no such page</html>"),
        (404, {"title": "Not found", "status": 404}),
        (401, {"error_code": 401, "message": "who are you"}),
        (403, {"error_code": 403}),
        (429, {}),
        (500, {"error_code": 50001}),
        (503, b""),
        (302, b""),
        (200, b"not json"),
        (200, b"[]"),
        (200, {}),
        (200, {"schema": 7}),
    ],
)
async def test_what_is_not_the_registrys_own_word_is_an_outage(
    serving: Serving, status: int, body: Any
) -> None:
    """Only its own error code says that there is no such schema."""
    serving.say(status, body)
    with pytest.raises(RegistryUnavailableError, match="schema registry"):
        await registry(serving).contract_of(7)


@pytest.mark.parametrize(
    "schema",
    [
        "no json",
        '"string"',
        '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "Missing"}]}',
        '{"type": "nonsense"}',
        "[" * 5_000 + "]" * 5_000,
    ],
)
async def test_a_schema_that_cannot_be_read_is_none_of_ours(serving: Serving, schema: str) -> None:
    """Whatever somebody registered, it ends nothing here."""
    serving.say(200, {"schema": schema})
    found = await registry(serving).contract_of(7)
    assert found is None or found.fingerprint != event_contract().fingerprint


async def test_a_schema_of_another_kind_is_none_of_ours(serving: Serving) -> None:
    """Protobuf and JSON Schema are not read as Avro."""
    serving.say(200, {"schema": json.dumps(event_contract().schema), "schemaType": "PROTOBUF"})
    assert await registry(serving).contract_of(7) is None
    serving.say(404, {"error_code": 40403, "message": "Schema not found"})
    assert await registry(serving).contract_of(7) is None


@pytest.mark.parametrize("number", [None, "7", -1, 2**31, 1.5])
async def test_an_id_that_is_none_is_an_outage(serving: Serving, number: Any) -> None:
    """An id has to fit the header."""
    serving.say(200, {"id": number})
    with pytest.raises(RegistryUnavailableError):
        await registry(serving).id_of(event_contract(), "approval-events", register=True)


@pytest.mark.parametrize("status", [409, 422])
async def test_a_refused_schema_is_said_to_be_refused(serving: Serving, status: int) -> None:
    """Whoever runs the registry has to mend that, and is told."""
    serving.say(status, {"error_code": status, "message": "incompatible"})
    with pytest.raises(RegistryRefusedError, match="refuses the event's schema"):
        await registry(serving).id_of(event_contract(), "approval-events", register=True)


async def test_a_registry_that_does_not_answer_is_given_up_in_time() -> None:
    """A silent address is an outage, not a wait without end."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = RegistrySettings(schema_registry_url=url, schema_registry_timeout_seconds=0.2)
        with pytest.raises(RegistryUnavailableError, match="TimeoutError"):
            await Registry(settings).contract_of(1)


async def test_credentials_and_certificates_are_used_and_never_shown(tmp_path: Path) -> None:
    """By TLS with its own authority, and with basic authentication; no error repeats either."""
    make_certificates(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    server = Serving(tls)
    settings = RegistrySettings(
        schema_registry_url=f"https://127.0.0.1:{server.port}/apis/ccompat/v7/",
        schema_registry_username=USER,
        schema_registry_password=PASSWORD,
        schema_registry_ca_file=tmp_path / "ca.pem",
    )
    try:
        server.say(200, {"id": 12})
        asked = Registry(settings)
        assert await asked.id_of(event_contract(), "approval-events", register=True) == 12
        expected = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        assert server.answers.seen == [
            ("/apis/ccompat/v7/subjects/approval-events-value", f"Basic {expected}")
        ]
        distrusting = settings.model_copy(update={"schema_registry_ca_file": None})
        with pytest.raises(RegistryUnavailableError) as caught:
            await Registry(distrusting).contract_of(1)
        assert PASSWORD not in repr(caught.value) + repr(settings)
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"URL": "registry:8081"}, "URL: takes http"),
        ({"URL": "ftp://registry"}, "URL: takes http"),
        ({"URL": "http://registry:99999"}, "URL: takes http"),
        ({"URL": "http://registry?x=1"}, "URL: takes http"),
        ({"URL": "http://user:word@registry"}, "URL: holds no credentials"),
        ({"USERNAME": "someone"}, "set .*_PASSWORD together, or neither"),
        ({"TIMEOUT_SECONDS": "0"}, "TIMEOUT_SECONDS"),
    ],
)
def test_a_wrong_setting_is_named_and_never_repeated(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    """Each wrong setting is told by its variable."""
    for name, value in variables.items():
        monkeypatch.setenv(f"APPROVALTRAIL_SCHEMA_REGISTRY_{name}", value)
    with pytest.raises(SettingsError, match=message) as caught:
        RegistrySettings.from_environment()
    assert "word" not in str(caught.value).replace("PASSWORD", "")


def test_certificates_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    """A missing file of certificates is a setting to mend."""
    settings = RegistrySettings(
        schema_registry_url="https://registry", schema_registry_ca_file=tmp_path / "none.pem"
    )
    with pytest.raises(SettingsError, match="SCHEMA_REGISTRY_CA_FILE"):
        Registry(settings)
    with pytest.raises(SettingsError, match="SCHEMA_REGISTRY_URL is not set"):
        Registry(RegistrySettings())
