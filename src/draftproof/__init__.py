"""Speculative decoding that proves itself: read, write, decode, diagnose."""

__version__ = "0.1.0"
