"""Targets and drafters trained from recipes: corpus, nets that can be differentiated, one loop for all."""
