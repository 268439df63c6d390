"""Losslessness proved on what is installed: tiny targets, adversaries, the law of trees."""
