"""Who calls: credentials become identities."""

from __future__ import annotations

from approvaltrail.server.auth.book import CallerBook, load_callers
from approvaltrail.server.auth.identity import Identifier, Identity
from approvaltrail.server.auth.own_keys import OwnKeys
from approvaltrail.server.auth.verifier import AccessTokens, AnyOf

__all__ = [
    "AccessTokens",
    "AnyOf",
    "CallerBook",
    "Identifier",
    "Identity",
    "OwnKeys",
    "load_callers",
]
