"""The directory for an engine's PYTHONPATH; see its one module."""
