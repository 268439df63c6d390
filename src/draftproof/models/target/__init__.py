"""From a checkpoint to a decoder that runs, and its slow plain twin."""
