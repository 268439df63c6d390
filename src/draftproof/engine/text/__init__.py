"""Text to token ids and back, templates, and where a text ends."""
