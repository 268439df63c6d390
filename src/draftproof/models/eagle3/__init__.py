"""The EAGLE-3 drafter: its shape, its tensors, its forward."""
