"""The variational posterior: mixture, evidence lower bound, fit (Sections 3.1, 3.2, 3.6, S1)."""
