"""Remembers: ClickHouse migrations, connection by DSN, and named queries."""
