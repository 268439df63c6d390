"""What a running server says it counted: its metrics, its log, its answers; and requests put to it."""
