"""GGUF files as targets."""
