"""transformers as a reader: a probe that runs in its Python, and what became of each field."""
