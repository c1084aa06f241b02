"""Modules that all packages share: configuration, errors, logs, addresses, versions of plugins."""
