"""Links between the parties of a session: connections, frames, and communicators on them."""
