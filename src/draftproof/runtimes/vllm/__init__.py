"""vLLM as a reader: its own configuration code before a start, its own worker while it serves."""
