"""Put files in place and know how far that is proven: writes, expectations, the ledger, the diagnosis."""
