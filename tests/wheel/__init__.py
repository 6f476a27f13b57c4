"""The built distributions: what they hold, and how they run in an empty environment."""
