"""Witness: what an engine's process opened, written down by the process itself."""
