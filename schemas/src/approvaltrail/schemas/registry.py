"""A schema registry with Confluent's interface: ids of our contracts, and contracts of foreign ids.

Three questions of that interface are asked (Confluent Schema Registry API v1; Apicurio Registry and
Karapace answer them too). Only what the registry itself says counts as its word: an answer that is
none of its own, a proxy's 404 say, is an outage, never "there is no such schema".
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import httpx

from approvaltrail.schemas.contract import contract_of
from approvaltrail.schemas.errors import (
    RegistryError,
    RegistryRefusedError,
    RegistryUnavailableError,
    SettingsError,
)

if TYPE_CHECKING:
    from approvaltrail.schemas.contract import Contract
    from approvaltrail.schemas.registry_settings import RegistrySettings

_HEADERS: Final = {
    "Accept": "application/vnd.schemaregistry.v1+json, application/json",
    "Content-Type": "application/vnd.schemaregistry.v1+json",
}
_SUBJECT_UNKNOWN: Final = 40401
_SCHEMA_UNKNOWN: Final = 40403
_REFUSALS: Final = {409: "its compatibility rule forbids this schema", 422: "it rejects the schema"}
_HIGHEST_ID: Final = 2**31 - 1


class Registry:
    """Asks the registry that the settings name, with a connection of its own for each question."""

    def __init__(self, settings: RegistrySettings) -> None:
        """Take the settings; nothing is sent.

        Raises:
            SettingsError: no registry is set, or its certificates cannot be used.
        """
        if settings.schema_registry_url is None:
            raise SettingsError("APPROVALTRAIL_SCHEMA_REGISTRY_URL is not set")
        self._url = settings.schema_registry_url
        self._timeout_seconds = settings.schema_registry_timeout_seconds
        self._tls = settings.schema_registry_tls()
        user, password = settings.schema_registry_username, settings.schema_registry_password
        self._auth = (user, password.get_secret_value()) if user and password else None

    async def id_of(self, contract: Contract, topic: str, *, register: bool) -> int:
        """Return the id of a topic's contract, registering it first where that is allowed.

        The subject is `<topic>-value` (Confluent's TopicNameStrategy).

        Raises:
            RegistryUnavailableError: the registry does not answer as it should.
            RegistryRefusedError: it does not take the schema, or lacks it and nobody may register.
        """
        subject, schema = f"{topic}-value", {"schema": json.dumps(contract.schema)}
        answer = await self._ask("POST", f"/subjects/{subject}", schema)
        if answer is None and register:
            answer = await self._ask("POST", f"/subjects/{subject}/versions", schema)
        if answer is None:
            raise RegistryRefusedError(
                f"the schema registry has no {contract.name} under {subject}: run "
                "`approvaltrail migrate` with APPROVALTRAIL_SCHEMA_REGISTRY_URL, or set "
                "APPROVALTRAIL_SCHEMA_REGISTRY_REGISTER"
            )
        number = answer.get("id")
        if not isinstance(number, int) or not 0 <= number <= _HIGHEST_ID:
            raise _strange("gave no id of a schema")
        return number

    async def contract_of(self, number: int) -> Contract | None:
        """Return the Avro schema of an id; None if the registry has none by that id.

        Raises:
            RegistryUnavailableError: the registry does not answer as it should.
        """
        answer = await self._ask("GET", f"/schemas/ids/{number}")
        if answer is None or answer.get("schemaType", "AVRO") != "AVRO":
            return None
        text = answer.get("schema")
        if not isinstance(text, str):
            raise _strange("gave no schema")
        try:
            return contract_of(f"schema {number} of the registry", json.loads(text))
        except Exception:  # noqa: BLE001 - fastavro raises whatever somebody's schema leads it into
            return None

    async def _ask(
        self, method: str, path: str, body: dict[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Return the answer; None for the registry's own "there is no such schema"."""
        try:
            async with (
                asyncio.timeout(self._timeout_seconds),
                httpx.AsyncClient(
                    auth=self._auth,
                    verify=self._tls,
                    timeout=self._timeout_seconds,
                    trust_env=False,
                ) as client,
            ):
                answer = await client.request(method, self._url + path, json=body, headers=_HEADERS)
        except (httpx.HTTPError, OSError) as error:
            raise RegistryUnavailableError(
                f"the schema registry cannot be reached ({type(error).__name__}): check "
                "APPROVALTRAIL_SCHEMA_REGISTRY_URL and that it runs"
            ) from None
        return _read(answer)


def _read(answer: httpx.Response) -> dict[str, Any] | None:
    try:
        said = answer.json()
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise _strange(f"answered {answer.status_code} without its JSON")
    if answer.is_success:
        return said
    if said.get("error_code") in {_SUBJECT_UNKNOWN, _SCHEMA_UNKNOWN}:
        return None
    if answer.status_code in _REFUSALS:
        why = _REFUSALS[answer.status_code]
        raise RegistryRefusedError(f"the schema registry refuses the event's schema: {why}")
    raise _strange(f"answered {answer.status_code}")


def _strange(what: str) -> RegistryError:
    return RegistryUnavailableError(
        f"the schema registry {what}: check APPROVALTRAIL_SCHEMA_REGISTRY_URL, and that this user "
        "may read and register schemas there"
    )
