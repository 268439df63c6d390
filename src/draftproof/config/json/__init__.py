"""One strict JSON value, read with places; compared, patched and shown by type."""
