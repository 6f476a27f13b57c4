"""From scores to decisions: what to review, what to label next, and when to abstain."""
