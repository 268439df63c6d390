"""Which tensors an architecture must have, and how a ledger fits that table."""
