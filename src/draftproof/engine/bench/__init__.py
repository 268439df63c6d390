"""Methods side by side on one target: how fast each is, what of it was kept, and whether a token changed."""
