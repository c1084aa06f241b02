"""MPC processes of a session: each runs a native service, which reads what peers send."""
