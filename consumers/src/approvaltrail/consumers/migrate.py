"""The migration job: the store's tables, Kafka's topics and the registry's schemas, then an end.

`python -m approvaltrail.consumers.migrate` runs before sinks of a new version start. It is
idempotent, and its principal is the only one that needs the right to create and alter.
"""

from __future__ import annotations

import asyncio
import sys

import structlog

from approvaltrail.consumers.errors import ConsumerError
from approvaltrail.consumers.exit_codes import ExitCode
from approvaltrail.consumers.logs import configure_logs
from approvaltrail.consumers.topics_admin import ensure_topics
from approvaltrail.schemas.contract import event_contracts
from approvaltrail.schemas.errors import RegistryError, SettingsError
from approvaltrail.schemas.kafka_settings import KafkaSettings
from approvaltrail.schemas.registry import Registry
from approvaltrail.schemas.registry_settings import RegistrySettings
from approvaltrail.schemas.topics import EVENTS, prefixed
from approvaltrail.store.connection import open_store
from approvaltrail.store.errors import InvalidDsnError, StoreError
from approvaltrail.store.migrations import migrate
from approvaltrail.store.settings import StoreSettings

log = structlog.get_logger("approvaltrail.migrate")


class MigrationSettings(KafkaSettings, RegistrySettings, StoreSettings):
    """Where Kafka, its registry and the store are, and how many brokers there are."""

    single_machine: bool = False
    """Whether the cluster is one broker: one replica and fewer partitions."""


def bring_up_to_date(settings: MigrationSettings) -> tuple[list[str], list[str]]:
    """Apply what is due; return the names of applied migrations and what was done to topics.

    Raises:
        StoreError: the store cannot be reached, or an applied migration was changed.
        ConsumerError: Kafka cannot be reached, or a topic differs in a way only an operator mends.
        RegistryError: the schema registry cannot be reached, or refuses the event's schema.
    """
    with open_store(settings.dsn()) as store:
        applied = list(migrate(store))
    done = asyncio.run(
        ensure_topics(
            settings.kafka_bootstrap_servers,
            settings.topic_prefix,
            single_machine=settings.single_machine,
            options=settings.connection_options(),
        )
    )
    return applied, done + asyncio.run(register_schemas(settings, settings.topic_prefix))


async def register_schemas(settings: RegistrySettings, prefix: str) -> list[str]:
    """See that the registry, if one is set, has every version of the event; say so in sentences.

    Raises:
        RegistryError: it cannot be reached, or refuses one.
    """
    if settings.schema_registry_url is None:
        return []
    registry, topic = Registry(settings), prefixed(EVENTS, prefix)
    return [
        f"{version.name} is schema {await registry.id_of(version, topic, register=True)} of the "
        f"registry, for {topic}"
        for version in event_contracts().values()
    ]


def main() -> int:
    """Run the job with settings from the environment and return an exit code."""
    try:
        settings = MigrationSettings.from_environment()
        configure_logs("migrate", "info")
        applied, done = bring_up_to_date(settings)
    except (SettingsError, InvalidDsnError) as error:
        sys.stderr.write(f"migrate: {error}\n")
        return ExitCode.SETTINGS
    except (ConsumerError, RegistryError, StoreError, OSError) as error:
        sys.stderr.write(f"migrate: {error}\n")
        return ExitCode.UNAVAILABLE
    log.info("migrated", migrations=applied, topics=done)
    return ExitCode.STOPPED


if __name__ == "__main__":
    sys.exit(main())
