"""Speed of the engine beside its peers: each in a process of its own, taking turns."""
