"""What every page gets: settings, answers within the viewer's scope, and what is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from approvaltrail.dashboard.access.viewer import Viewer
from approvaltrail.dashboard.data import Answers
from approvaltrail.dashboard.settings import DashboardSettings
from approvaltrail.dashboard.view import View
from approvaltrail.store.answers import Completeness


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One run of one page."""

    settings: DashboardSettings
    everything: Answers
    """All that the viewer may see."""
    view: View
    viewer: Viewer
    """Who looks, and what that role may do."""

    @property
    def answers(self) -> Answers:
        """What the viewer may see of the tenant chosen."""
        return self.everything.narrowed(self.view.tenant)

    def begin_status(self) -> None:
        """Begin to ask for completeness, which is drawn last; pages do so after their own rows."""
        self.everything.soon(self.completeness)

    def completeness(self) -> Completeness:
        """Whether what is shown is all there is; the whole pipeline, whatever tenant is chosen."""
        return self.everything.completeness(self.view.now, self.settings.expected_producers)


Page = Callable[[Desk], None]
"""Draws the content below the status line."""
