"""The text the shipped pair is trained on: made from a seed, and a share of the standard library."""
