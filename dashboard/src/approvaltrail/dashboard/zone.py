"""The viewer's own zone, beside UTC and never instead of it."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import streamlit as st

from approvaltrail.dashboard import formats

_NAME_CHARACTERS = 64


def viewers() -> ZoneInfo | None:
    """Return the zone that the viewer's browser names, where this machine knows it."""
    name = st.context.timezone
    if not isinstance(name, str) or not 0 < len(name) <= _NAME_CHARACTERS:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # the browser chose the text
        return None


def both(moment: datetime) -> str:
    """Spell an instant in UTC, and on a second line in the viewer's zone."""
    utc, zone = f"{formats.instant(moment)} UTC", _elsewhere()
    if zone is None:
        return utc
    local = moment.astimezone(zone)
    return f"{utc}\n{local:%Y-%m-%d %H:%M:%S} {local:%Z} ({zone.key})"


def clock(moment: datetime) -> str | None:
    """Spell the time of day in the viewer's zone, or None where that is UTC or not known."""
    zone = _elsewhere()
    return None if zone is None else f"{moment.astimezone(zone):%H:%M:%S %Z}"


def _elsewhere() -> ZoneInfo | None:
    zone = viewers()
    return None if zone is None or zone.key in {"UTC", "Etc/UTC"} else zone
