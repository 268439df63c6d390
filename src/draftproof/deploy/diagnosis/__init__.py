"""Why a file is not what was meant: told by digest, and from the ledger."""
