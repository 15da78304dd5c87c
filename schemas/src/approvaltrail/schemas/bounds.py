"""How long each text of an event may be, in characters, and how many attributes it may have.

Every text of an event is bounded here, so that no event can be too big for the journal, the
broker's message limit or a table row. A text that exceeds its bound is cut with the hash of the
whole before it is recorded (see `sanitise`); a model built directly refuses it.
"""

from __future__ import annotations

SERVICE = 128
INSTANCE = 256
NONCE = 64
TENANT = 256
TOOL = 128
TARGET = 512
ACTION = 128
PLAN_SUMMARY = 2_000
KEY_ID = 64
PRINCIPAL = 256
CREDENTIAL_ID = 128
SESSION_ID = 128
CLIENT_NAME = 256
REQUEST_ID = 128
TRACE_ID = 64
ATTRIBUTES = 16
ATTRIBUTE_NAME = 64
ATTRIBUTE_VALUE = 256

EVENT_BYTES = 64 * 1024
"""No encoded event is longer: the texts above, each character at most four bytes, fit with room."""
