"""Requests put to a running server, one at a time, and what its counters say of exactly those."""
