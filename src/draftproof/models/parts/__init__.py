"""What layers are made of: attention, delta rule, rope, norms, linear maps."""
