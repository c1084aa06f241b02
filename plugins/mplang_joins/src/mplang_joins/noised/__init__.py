"""Noise over units that several parties have in common: each draws its own, shares add it."""
