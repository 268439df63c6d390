"""How far a write is proven: levels, and the evidence for each."""
