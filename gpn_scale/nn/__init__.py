"""The forward pass: features -> latent -> density -> evidence -> posterior."""
