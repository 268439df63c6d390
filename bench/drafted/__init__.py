"""Engines that decode with one DFlash drafter, each in a process of its own."""
