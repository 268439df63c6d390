"""The DFlash drafter: its shape, its tensors, its forward."""
