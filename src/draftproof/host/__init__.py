"""A machine: run a program on it, read from it; what must run there is standard library only."""
