"""Processes of a worker: forked, limited, named, called and ended."""
