"""SGLang as a reader: its own functions that resolve a drafter, its workers through a plugin."""
