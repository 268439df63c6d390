"""What a file says: bytes to values, each value with the place it came from."""
