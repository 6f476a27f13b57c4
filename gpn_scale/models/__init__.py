"""All node classifiers behind one protocol, by name: GPN, its variants and comparison models."""
