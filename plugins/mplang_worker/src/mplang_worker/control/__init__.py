"""Control socket of a worker: its owner and operators look at what runs, and stop it."""
