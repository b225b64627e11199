"""Where to evaluate next (Section 3.3 and S2.1)."""
