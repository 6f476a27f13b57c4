"""The diffusion beta_agg <- (1 - t) S beta_agg + t beta, its matrix S, and its implementations.

All compute the same map. They differ in what they are applied to:

- `power_iteration`: all nodes at once, in memory, differentiable; exact training and perturbations.
- `blocks`: all nodes, within a memory budget, without gradients; prediction of graphs of any size.
- `exact_rows`: complete rows of a few nodes; explanations.
- `push`: sparse rows of nodes that joined the graph later, with a bound on what was left out.

`precompute` computes the top-k rows of many nodes by kernels of its own, from the same S.
"""
