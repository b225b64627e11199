"""What a person sees while a run is under way."""
