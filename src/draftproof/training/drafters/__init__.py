"""Training of drafters beside a frozen target: DFlash, EAGLE-3 and a head of multi-token prediction."""
