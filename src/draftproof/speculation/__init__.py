"""Speculative decoding as arithmetic on tensors: no module, no cache, no file, no clock."""
