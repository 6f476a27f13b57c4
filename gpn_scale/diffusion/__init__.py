"""The diffusion B <- (1 - t) S B + t beta: its matrix, and each way of applying it."""
