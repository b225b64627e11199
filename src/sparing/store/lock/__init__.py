"""Who may write to a run directory."""
