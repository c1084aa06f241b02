"""Coordinator's side: the driver, and its client for each worker."""
