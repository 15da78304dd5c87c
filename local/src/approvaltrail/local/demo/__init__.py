"""The demonstration: a server behind the gate, ordinary callers, and a few scripted incidents."""
