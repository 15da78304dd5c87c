"""The deployment's brokers, once for all tests in this folder."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.deployment import secure_cluster
from tests.support.services import missing

from approvaltrail.consumers.topics_admin import ensure_topics
from approvaltrail.local.broker import BrokerError
from approvaltrail.local.child import ChildError
from approvaltrail.schemas.kafka_settings import KafkaSettings

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="package")
def secure(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[secure_cluster.SecureCluster]:
    """Give three running brokers with the deployment's users and rights."""
    try:
        running = secure_cluster.start(tmp_path_factory.mktemp("secure"))
    except (BrokerError, ChildError) as error:
        missing("the embedded Kafka", error)
    try:
        if secure_cluster.grant(running) != 0:
            logs = "\n".join(broker.log_tail()[-3000:] for broker in running.cluster.brokers)
            pytest.fail(f"the brokers did not take users and rights:\n{logs}", pytrace=False)
        make_topics(running)
        yield running
    finally:
        running.cluster.kill()


def make_topics(running: secure_cluster.SecureCluster) -> None:
    """Create the topics as the user `migrate`, who has no more rights than that takes."""
    settings = KafkaSettings(
        kafka_bootstrap_servers=running.clients,
        kafka_security_protocol="SASL_SSL",
        kafka_sasl_username="migrate",
        kafka_sasl_password=running.password("migrate"),
        kafka_ssl_ca_file=running.authority,
    )
    asyncio.run(ensure_topics(running.clients, options=settings.connection_options()))
