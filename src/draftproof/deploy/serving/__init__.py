"""One intended deployment, rendered for each engine and version: what to start, with every value's reason."""
