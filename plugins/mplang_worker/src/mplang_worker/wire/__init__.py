"""Messages between coordinator, front, engine and peers: values, requests, openings."""
