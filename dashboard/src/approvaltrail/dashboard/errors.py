"""What can go wrong in the dashboard itself.

DashboardError
├── AddressRefusedError        an address to listen on that would show the pages to anybody
├── WritingUserRefusedError    the database user could change the record that it shows to others
├── AccessRefusedError         a viewer who may not look, or not ask this
├── SignInError                the identity provider did not vouch for the visitor
└── ExportError
    ├── TooManyRowsError       more rows than one export may hold
    └── StoreMovedError        the store answered half of what it had announced
"""

from __future__ import annotations

from typing import ClassVar


class DashboardError(Exception):
    """Base of the dashboard's errors."""

    retriable: ClassVar[bool] = False


class AddressRefusedError(DashboardError):
    """Without sign-in the dashboard listens on this machine's loopback address alone."""


class WritingUserRefusedError(DashboardError):
    """A dashboard that serves others needs a database user who may only read."""


class AccessRefusedError(DashboardError):
    """The viewer is known and may not see this; the message says why and whom to ask."""


class SignInError(DashboardError):
    """Signing in did not succeed; starting over may help."""

    retriable: ClassVar[bool] = True


class ExportError(DashboardError):
    """Base of what keeps an export from being made."""


class TooManyRowsError(ExportError):
    """The range holds more rows than the cap; a narrower one can be exported."""


class StoreMovedError(ExportError):
    """Rows that were counted could not be read: the export would be short without saying so."""

    retriable: ClassVar[bool] = True
