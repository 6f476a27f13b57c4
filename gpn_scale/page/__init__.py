"""A run as one page for people: what the model knows, what it does not, and why."""
