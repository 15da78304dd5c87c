"""Who may look, from where, and at what."""
