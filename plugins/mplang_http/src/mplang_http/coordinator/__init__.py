"""What an analyst runs: the driver, and its client for each worker."""
