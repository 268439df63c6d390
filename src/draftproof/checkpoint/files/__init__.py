"""The files of a checkpoint directory: headers, indexes, and what only looks like them."""
