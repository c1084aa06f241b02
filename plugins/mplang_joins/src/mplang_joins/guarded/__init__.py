"""Guarded aggregates of units that several parties have in common, on secret shares."""
