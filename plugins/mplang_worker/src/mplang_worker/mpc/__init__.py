"""MPC process of a session: native services, which read what peers send, apart from values."""
