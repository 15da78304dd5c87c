"""Everything on one machine: broker, engine, supervisor, and the command line."""
