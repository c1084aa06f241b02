"""What all rooms share: configuration, errors, logs, addresses, versions of plugins."""
