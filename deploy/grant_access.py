"""Make Kafka's users and access rights equal to acls.yaml: `python grant_access.py --help`.

Runs as an administrator with a certificate, as often as you like. For the users in the table, what
is missing is added and what is too much is taken away; other users' rights are left alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

HERE: Final = Path(__file__).parent
_ANSWER_SECONDS: Final = 30.0
_LOOK_AGAIN_SECONDS: Final = 0.25
_ITERATIONS: Final = 4_096
"""Of SCRAM: its least. The passwords are 256 random bits, so more would protect nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One row of the table: a user may do one thing with one topic or group."""

    user: str
    kind: ResourceType
    name: str
    operation: AclOperation

    def binding(self) -> AclBinding:
        """Return it as Kafka's clients name it."""
        return AclBinding(
            self.kind,
            self.name,
            ResourcePatternType.LITERAL,
            f"User:{self.user}",
            "*",
            self.operation,
            AclPermissionType.ALLOW,
        )


def read_table(file: Path, prefix: str = "") -> dict[str, list[Right]]:
    """Return each user's rights; `prefix` stands before the names of topics."""
    table = yaml.safe_load(file.read_text("utf-8"))
    return {
        user: [
            Right(user=user, kind=kind, name=before + name, operation=AclOperation[operation])
            for section, kind, before in (
                ("topics", ResourceType.TOPIC, prefix),
                ("groups", ResourceType.GROUP, ""),
            )
            for name, operations in entry.get(section, {}).items()
            for operation in operations
        ]
        for user, entry in table["users"].items()
    }


def connect(bootstrap_servers: str, identity: Path, authority: Path) -> AdminClient:
    """Return an administrator's client; `identity` holds its key and certificate."""
    return AdminClient(
        {
            "bootstrap.servers": bootstrap_servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority),
            "ssl.certificate.location": str(identity),
            "ssl.key.location": str(identity),
            "log_level": 0,
        }
    )


def wait_for_brokers(admin: AdminClient, brokers: int, seconds: float) -> None:
    """Return once so many brokers are there.

    Raises:
        TimeoutError: they are not, within the time.
    """
    deadline = time.monotonic() + seconds
    seen = 0
    while time.monotonic() < deadline:
        try:
            seen = len(admin.list_topics(timeout=2).brokers)
        except KafkaException:
            seen = 0
        if seen >= brokers:
            return
        time.sleep(_LOOK_AGAIN_SECONDS)
    raise TimeoutError(
        f"{seen} of {brokers} brokers answered within {seconds:g} s: look at the brokers' logs"
    )


def set_passwords(admin: AdminClient, passwords: dict[str, bytes]) -> None:
    """Give each user its password, by SCRAM-SHA-512; one that had another has this one now."""
    how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _ITERATIONS)
    alterations = [
        UserScramCredentialUpsertion(user, how, password) for user, password in passwords.items()
    ]
    for future in admin.alter_user_scram_credentials(alterations).values():
        future.result(_ANSWER_SECONDS)


def set_rights(admin: AdminClient, table: dict[str, list[Right]]) -> tuple[int, int]:
    """Add what is missing and take away what is too much; return how many of each."""
    wanted = {right.binding() for rights in table.values() for right in rights}
    there: set[AclBinding] = set()
    for user in table:
        there |= set(admin.describe_acls(_all_of(user)).result(_ANSWER_SECONDS))
    missing, excess = list(wanted - there), list(there - wanted)
    _wait_for(admin.create_acls(missing) if missing else {})
    _wait_for(admin.delete_acls([_exactly(one) for one in excess]) if excess else {})
    return len(missing), len(excess)


def _all_of(user: str) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        f"User:{user}",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def _exactly(binding: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )


def _wait_for(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(_ANSWER_SECONDS)


def main(arguments: list[str] | None = None) -> int:
    """Wait for the brokers, set passwords and rights, and say what changed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--bootstrap-servers", required=True, help="where administrators connect")
    parser.add_argument("--secrets", type=Path, required=True, help="the administrator's folder")
    parser.add_argument("--acls", type=Path, default=HERE / "acls.yaml")
    parser.add_argument("--prefix", default=os.environ.get("APPROVALTRAIL_TOPIC_PREFIX", ""))
    parser.add_argument("--brokers", type=int, default=3, help="how many to wait for")
    parser.add_argument("--wait-seconds", type=float, default=120)
    given = parser.parse_args(arguments)
    folder: Path = given.secrets
    table = read_table(given.acls, given.prefix)
    admin = connect(given.bootstrap_servers, folder / "identity.pem", folder / "ca.pem")
    try:
        wait_for_brokers(admin, given.brokers, given.wait_seconds)
        set_passwords(admin, {user: (folder / f"{user}.password").read_bytes() for user in table})
        added, removed = set_rights(admin, table)
    except (KafkaException, OSError) as error:  # TimeoutError is one of the latter
        sys.stderr.write(f"access rights are not set: {error}\n")
        return 1
    sys.stdout.write(f"{len(table)} users, {added} rights added, {removed} taken away\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
