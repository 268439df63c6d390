"""What the weights are: headers, indexes and caches read without loading a tensor, without torch."""
