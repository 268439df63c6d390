"""Memory that decoding must be able to rewind: keys and values, recurrent states, and both as a Session."""
