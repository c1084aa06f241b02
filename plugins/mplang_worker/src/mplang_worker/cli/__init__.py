"""Commands, the local cluster, and the worker's main function, which puts the rooms together."""
