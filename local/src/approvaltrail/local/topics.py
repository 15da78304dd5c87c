"""Topics brought up to date, whether they were made for one machine or for a cluster."""

from __future__ import annotations

from approvaltrail.consumers.errors import TopicsError
from approvaltrail.consumers.topics_admin import check_topics, ensure_topics
from approvaltrail.schemas.kafka_settings import KafkaSettings


async def bring_up_to_date(bootstrap_servers: str, prefix: str, *, embedded: bool) -> list[str]:
    """Create and mend topics, and say in sentences what was done.

    Topics that exist keep their number of partitions: a cluster may serve those of one machine.
    An embedded broker has no credentials, whatever the environment says of another.

    Raises:
        TopicsError: a topic differs in a way that only its operator may mend.
        KafkaUnavailableError: the cluster cannot be reached, or refuses these credentials.
        SettingsError: a setting of Kafka's has no usable value.
    """
    options = {}
    if not embedded:
        settings = KafkaSettings.from_environment(kafka_bootstrap_servers=bootstrap_servers)
        options = settings.connection_options()
    try:
        await check_topics(bootstrap_servers, prefix, options=options)
    except TopicsError:
        return await ensure_topics(
            bootstrap_servers, prefix, single_machine=embedded, options=options
        )
    return []
