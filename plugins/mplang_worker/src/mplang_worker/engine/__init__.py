"""What a coordinator's programs run in: engine, checker, and the process that forks them."""
