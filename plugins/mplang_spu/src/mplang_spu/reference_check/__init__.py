"""Checked beside: in a simulator, each SPU function also runs in float64.

Where the results agree, that is all. Where they differ, the function runs once more on SPU with
its inner values as results, and the op that gave the wrong number is found.
"""
