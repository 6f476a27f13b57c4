"""The forward pass and nothing else: features -> latent -> density -> evidence -> posterior."""
