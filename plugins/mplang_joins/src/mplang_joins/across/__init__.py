"""Queries over tables of several parties: split by owner, joined and aggregated on shares."""
