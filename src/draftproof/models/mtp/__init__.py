"""The multi-token-prediction head that lives in a target's own checkpoint."""
