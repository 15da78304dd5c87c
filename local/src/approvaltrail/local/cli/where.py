"""Where the servers are: flags first, then the environment, then the running `up`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from approvaltrail.local.data_folder import DataFolder, RunFile
from approvaltrail.local.errors import NotRunningError
from approvaltrail.local.settings import LocalSettings
from approvaltrail.store.connection import Store, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Known addresses; None where nothing names one."""

    settings: LocalSettings
    run: RunFile | None
    kafka: str | None
    writer_dsn: str | None = field(repr=False)
    reader_dsn: str | None = field(repr=False)
    topic_prefix: str

    def need_kafka(self) -> str:
        """Return the bootstrap servers.

        Raises:
            NotRunningError: nothing names them.
        """
        if self.kafka is None:
            raise self._nothing_names("broker", "--kafka or KAFKA_BOOTSTRAP_SERVERS")
        return self.kafka

    def need_writer_dsn(self) -> str:
        """Return the DSN of the user who may write.

        Raises:
            NotRunningError: nothing names it.
        """
        if self.writer_dsn is None:
            raise self._nothing_names("store", "--clickhouse or CLICKHOUSE_DSN")
        return self.writer_dsn

    def open_writer(self) -> Store:
        """Open the store to write."""
        return open_store(self.need_writer_dsn())

    def open_reader(self) -> Store:
        """Open the store to ask: as the user who may only read, else with writing forbidden."""
        if self.reader_dsn is not None and self.reader_dsn != self.writer_dsn:
            return open_store(self.reader_dsn)
        return open_store(self.need_writer_dsn(), read_only=True)

    def _nothing_names(self, what: str, how: str) -> NotRunningError:
        return NotRunningError(
            f"no {what} is known: no `up` runs on {self.settings.data}, and nothing else names "
            f"one; start `approvaltrail up`, point to its folder with --data, or give {how}"
        )


def find(
    *, data: Path | None = None, clickhouse: str | None = None, kafka: str | None = None
) -> Where:
    """Look where the servers are.

    Raises:
        SettingsError: a variable has no usable value.
    """
    settings = LocalSettings.from_environment(data=data)
    run = DataFolder(settings.data.absolute()).running()
    # A folder named by hand means the `up` on it, whatever servers the environment names.
    by_environment = data is None or run is None
    brokers, writer, reader = kafka, clickhouse, clickhouse
    if by_environment:
        brokers = brokers or settings.kafka_bootstrap_servers
        writer = writer or settings.given_writer_dsn()
        reader = reader or settings.given_reader_dsn() or writer
    if run is not None:
        brokers = brokers or run.kafka_bootstrap_servers
        writer = writer or run.clickhouse_dsn
        reader = reader or run.clickhouse_reader_dsn
    return Where(
        settings=settings,
        run=run,
        kafka=brokers,
        writer_dsn=writer,
        reader_dsn=reader,
        topic_prefix=settings.topic_prefix or (run.topic_prefix if run is not None else ""),
    )
