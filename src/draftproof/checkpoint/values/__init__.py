"""The few values that are looked at: vocabulary maps, norms, sampled pages, holes."""
