"""One module a way of writing things down; each turns its own words into the canonical ones."""
