"""What was intended and what was seen, only ever appended to."""
