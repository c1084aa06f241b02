"""Front of a worker: port, key, HTTP, gate and storage; no code of a coordinator runs here."""
