"""Processes that run a coordinator's programs: engine, checker, and the one that forks them."""
