"""Runs: driven to their end, one or several, resumed from their stores, and shown."""
