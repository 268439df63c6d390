"""What runs in the engine's Python: sent as text, standard library only, Python 3.9 syntax."""
