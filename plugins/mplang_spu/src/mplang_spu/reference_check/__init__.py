"""Reference check of SPU's numbers: a simulator also runs each SPU function in float64.

If the results agree, nothing else happens. If they differ, the function runs again on SPU with its
inner values as results, which locates the op that gave the wrong number.
"""
