"""Live caches: one inside a program, and the server with what is done beside it."""
