"""Evidence that can be taken away: events in one file, and a manifest that says what they are.

`export_trail` and `export_events` (making.py) write it, `verify_export` (verifying.py) checks it,
and `widgets.offer` draws the button. Nothing but the widgets needs Streamlit.
"""
