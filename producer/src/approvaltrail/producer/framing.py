"""Which header an event has on the wire: its journal's own, or Confluent's where a registry is.

A journal keeps single-object bytes, and seals are over those. The relay exchanges the header when
it sends; the record behind it stays as it is. Ids are learnt before the first event is sent, and
kept as long as the process lives: a registry never gives another id to a schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from approvaltrail.producer.errors import RelayError
from approvaltrail.schemas import topics
from approvaltrail.schemas.contract import HEADER_BYTES, confluent_header, event_contracts
from approvaltrail.schemas.errors import RegistryError, SettingsError

if TYPE_CHECKING:
    from approvaltrail.producer.settings import ProducerSettings
    from approvaltrail.schemas.registry import Registry

_EXTRA: Final = "install approvaltrail-producer[registry]"


class Framing:
    """Puts events into the framing that the settings ask for."""

    def __init__(self, settings: ProducerSettings) -> None:
        """Take the settings; nothing is asked yet.

        Raises:
            SettingsError: a registry is set, and what it takes to reach it is missing.
        """
        self._topic = topics.prefixed(topics.EVENTS, settings.topic_prefix)
        self._register = settings.schema_registry_register
        self._registry = _registry(settings) if settings.schema_registry_url else None
        self._headers: dict[bytes, bytes] = {}

    async def learn(self) -> None:
        """Learn the id of every version that a journal may hold, unless they are known.

        Raises:
            RelayError: the registry does not answer, or does not have our schema.
        """
        if self._registry is None or self._headers:
            return
        try:
            ids = {
                own: await self._registry.id_of(version, self._topic, register=self._register)
                for own, version in event_contracts().items()
            }
        except RegistryError as error:
            raise RelayError(str(error)) from error
        self._headers = {own: confluent_header(number) for own, number in ids.items()}

    def framed(self, body: bytes) -> bytes:
        """Return an event of the journal as it goes over the wire."""
        header = self._headers.get(body[:HEADER_BYTES])
        return body if header is None else header + body[HEADER_BYTES:]


def _registry(settings: ProducerSettings) -> Registry:
    try:
        from approvaltrail.schemas.registry import Registry  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise SettingsError(
            f"APPROVALTRAIL_SCHEMA_REGISTRY_URL: {error.name} is not installed; {_EXTRA}"
        ) from None
    return Registry(settings)
