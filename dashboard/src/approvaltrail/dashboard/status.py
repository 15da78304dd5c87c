"""The status line: on every page the first thing to go amber, and it says why.

It must never claim more than is known: complete up to an instant, for the producers heard from.
"""

from __future__ import annotations

from approvaltrail.dashboard import formats, pieces, text, zone
from approvaltrail.dashboard.desk import Desk
from approvaltrail.dashboard.markup import Markup, element, joined
from approvaltrail.dashboard.view import View
from approvaltrail.store.answers import Completeness, CompletenessState
from approvaltrail.store.errors import StoreError


def show(desk: Desk) -> None:
    """Draw the status line, also when the store cannot be asked, and what it stands for."""
    try:
        found = desk.completeness()
    except StoreError:
        text.show(unreachable())
    else:
        text.show(line(found, desk.view) + extent(desk.view))


def extent(view: View) -> Markup:
    """Say which span of time is shown and when it was looked at, in UTC and where the viewer is."""
    start, end = view.time_range.start, view.time_range.end
    span = (pieces.at(start, formats.second(start)), " → ", pieces.at(end, formats.second(end)))
    looked = pieces.at(view.now, formats.clock(view.now)[:8])
    here = zone.clock(view.now)
    beside = f" · {here} where you are" if here else ""
    return element("p", *span, " UTC · looked at ", looked, " UTC", beside, class_="at-extent")


def line(found: Completeness, view: View) -> Markup:
    """Compose the line from what is known."""
    pipeline = view.href("pipeline")
    match found.state:
        case CompletenessState.NOTHING_RECORDED:
            return _line("unknown", "○", "Nothing recorded yet", " by any producer.")
        case CompletenessState.INCOMPLETE:
            return _line("bad", "▲", "Incomplete: ", _because(found), _more(found, pipeline))
        case CompletenessState.NOT_YET:
            word = "Not yet complete: "
            return _line("warn", "◐", word, _because(found), _more(found, pipeline))
        case CompletenessState.COMPLETE if _short(found) or found.dead_letters:
            icon, word = "◐", "Complete with reservations: "
            return _line("warn", icon, word, _extent(found, view), _dead(found, pipeline))
        case _:
            word = "Complete "
            return _line("good", "✔\ufe0e", word, _extent(found, view), _dead(found, pipeline))


def unreachable() -> Markup:
    """Compose the line for a store that cannot be asked."""
    why = "nothing can be said about what is shown. Check that the store runs and CLICKHOUSE_DSN."
    return _line("bad", "✖\ufe0e", "Store unreachable: ", why)


def _line(tone: str, icon: str, word: str, *rest: str | Markup) -> Markup:
    mark = element("span", icon, class_="at-icon")
    words = element("span", element("strong", word), *rest)
    return element("div", mark, words, class_=f"at-status at-{tone}", role="status")


def _because(found: Completeness) -> str:
    return found.reasons[0] if found.reasons else "the reason is not known to this viewer"


def _more(found: Completeness, pipeline: str) -> Markup:
    others = len(found.reasons) - 1
    more = f" and {formats.counted(others, 'more reason')}" if others > 0 else ""
    dead = f" · {formats.counted(found.dead_letters, 'dead letter')}" if found.dead_letters else ""
    return joined(more, dead, " ", element("a", "→ Pipeline", href=pipeline))


def _extent(found: Completeness, view: View) -> Markup:
    heard = formats.counted(found.producers_heard, "producer")
    expected = "" if found.producers_expected is None else f" ({found.producers_expected} expected)"
    whom = f" for the {heard} heard from{expected}"
    if found.complete_until is None:
        return joined("in all that was emitted", whom)
    until = found.complete_until
    ago = formats.ago(until, view.now)
    moment = pieces.at(until)
    return joined("up to ", moment, f" ({ago})", whom)


def _dead(found: Completeness, pipeline: str) -> Markup:
    words = formats.counted(found.dead_letters, "dead letter")
    if not found.dead_letters:
        return joined(" · ", words)
    return joined(" · ", element("a", words, href=pipeline))


def _short(found: Completeness) -> bool:
    expected = found.producers_expected
    return expected is not None and found.producers_heard < expected
