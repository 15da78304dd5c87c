"""What a credential reaches: one predicate for the start-up statement, `check` and the notice.

A 403 on the projects listing is no doubt but a statement: this key cannot see the organisation.
The clusters listing is what the key reaches. One cluster is the good case and is named; ten are
said out loud. The server cannot make a key narrower; it can say how wide it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from approvaltrail.server.errors import PlatformError, PlatformRefusedError
from approvaltrail.server.platform.protocol import Platform
from approvaltrail.server.platform.values import Cluster, Projects

_NAMED: Final = 5


class Breadth(StrEnum):
    """How wide a credential is."""

    REFUSED = "refused"
    """The platform answered that it does not know this key."""
    UNKNOWN = "unknown"
    """The platform did not answer; nothing is claimed."""
    NOTHING = "nothing"
    SINGLE = "single"
    """One cluster: the good case."""
    SEVERAL = "several"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a credential reaches."""

    projects: Projects | None
    """None where the platform did not say."""
    clusters: tuple[Cluster, ...] = ()
    more: bool = False
    """The listing goes on beyond its first page."""
    refused: bool = False
    answered: bool = True

    @property
    def breadth(self) -> Breadth:
        """How wide the credential is."""
        if self.refused:
            return Breadth.REFUSED
        if not self.answered:
            return Breadth.UNKNOWN
        if not self.clusters:
            return Breadth.NOTHING
        return Breadth.SINGLE if len(self.clusters) == 1 and not self.more else Breadth.SEVERAL

    @property
    def organization(self) -> str | None:
        """The one organisation of all reached clusters, where they name one."""
        named = {cluster.organization for cluster in self.clusters}
        return named.pop() if len(named) == 1 else None

    def statement(self) -> str:
        """Say it in one or two sentences."""
        return " ".join(part for part in (self._clusters(), self._organisation()) if part)

    def _clusters(self) -> str:
        match self.breadth:
            case Breadth.REFUSED:
                return "The platform refused this key: it reaches nothing."
            case Breadth.UNKNOWN:
                return "What this key reaches is not known: the platform did not answer."
            case Breadth.NOTHING:
                return "This key reaches no cluster."
            case Breadth.SINGLE:
                return f"This key reaches one cluster: {_named(self.clusters[0])}."
            case Breadth.SEVERAL:
                count = f"{len(self.clusters)}{' or more' if self.more else ''}"
                names = ", ".join(map(_named, self.clusters[:_NAMED]))
                rest = ", …" if len(self.clusters) > _NAMED or self.more else ""
                return (
                    f"WIDE: this key reaches {count} clusters ({names}{rest}); a key scoped to one "
                    "cluster would keep a mistake within it."
                )

    def _organisation(self) -> str:
        match self.projects:
            case Projects.HIDDEN:
                return "It cannot see the organisation."
            case Projects.VISIBLE:
                return "WIDE: it sees the whole organisation."
            case None:
                return ""


async def reach_of(platform: Platform) -> Reach:
    """Ask the platform what its key reaches; never raises for what the platform answers."""
    try:
        page = await platform.list_clusters()
    except PlatformRefusedError:
        return Reach(projects=None, refused=True)
    except PlatformError:
        return Reach(projects=None, answered=False)
    try:
        projects: Projects | None = await platform.projects()
    except PlatformError:
        projects = None
    return Reach(projects=projects, clusters=page.clusters, more=page.next_page is not None)


def _named(cluster: Cluster) -> str:
    return f"{cluster.display_name!r} ({cluster.cluster_id})"
