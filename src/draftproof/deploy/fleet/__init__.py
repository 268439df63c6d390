"""Many files on many hosts: planned, verified, watched."""
