"""What the cluster API tells, reduced to what the tools use."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, Self

_KEY: Final = re.compile(r"([A-Za-z0-9_-]{4,64}):([\x21-\x7e]{8,256})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A platform API key: an identity and an authority in one."""

    public: str
    private: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `public:private`; None where the text is no key."""
        found = _KEY.fullmatch(text)
        return None if found is None else cls(public=found[1], private=found[2])

    @property
    def text(self) -> str:
        """The key as its holder presents it: a credential, not to be logged."""
        return f"{self.public}:{self.private}"


class Projects(StrEnum):
    """What the projects listing answered to a key."""

    VISIBLE = "visible"
    """The key sees the organisation."""
    HIDDEN = "hidden"
    """403: the key cannot see the organisation, which is a sign of a narrow key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster."""

    cluster_id: str
    display_name: str
    region: str = ""
    state: str = ""
    organization: str | None = None
    user_prefix: str | None = None
    """Every SQL user name of the cluster begins with it; the platform checks that."""
    host: str | None = None
    port: int | None = None

    def shown(self) -> dict[str, Any]:
        """Return what an exploration tool tells."""
        return {
            "clusterId": self.cluster_id,
            "displayName": self.display_name,
            "region": self.region,
            "state": self.state,
            "userPrefix": self.user_prefix,
            "host": self.host,
            "port": self.port,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPage:
    """One page of the clusters that a key reaches."""

    clusters: tuple[Cluster, ...]
    next_page: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of a cluster."""

    branch_id: str
    display_name: str
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlUser:
    """A SQL user of a cluster."""

    user_name: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup of a cluster."""

    backup_id: str
    cluster_id: str
    created_at: str = ""


def shown(value: Branch | SqlUser | Backup) -> dict[str, Any]:
    """Return a value as an exploration tool tells it, its names in the API's spelling."""
    return {_camel(name): item for name, item in asdict(value).items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
