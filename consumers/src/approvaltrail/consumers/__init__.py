"""Receives: the sink from Kafka to ClickHouse, dead letters and their redrive."""
