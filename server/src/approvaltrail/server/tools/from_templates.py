"""Tools made of SQL templates; none has a cluster among its arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from approvaltrail.server.errors import PlatformRejectedError
from approvaltrail.server.platform.values import Cluster
from approvaltrail.server.templates import Template
from approvaltrail.server.tools.access import Access
from approvaltrail.server.tools.definitions import FreeTool


def template_tools(templates: Iterable[Template]) -> tuple[FreeTool, ...]:
    """Return a tool for each template."""
    return tuple(map(_tool, templates))


def _tool(template: Template) -> FreeTool:
    async def run(given: BaseModel, access: Access) -> dict[str, Any]:
        database = access.sql_on(template.cluster)
        rows = await database.run(
            await _cluster(template.cluster, access),
            template.database,
            template.statement,
            given.model_dump(),
            changes=False,
        )
        return rows.structured()

    return FreeTool(
        name=template.name,
        description=template.description,
        arguments=template.arguments,
        run=run,
        target=template.cluster,
    )


async def _cluster(cluster_id: str, access: Access) -> Cluster:
    if access.pinned is not None:
        return Cluster(cluster_id=cluster_id, display_name="")
    found = await access.platform.get_cluster(cluster_id)
    if found is None:
        raise PlatformRejectedError("The cluster of this template is not within reach.")
    return found
