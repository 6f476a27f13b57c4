"""Limits of a build that depend on its graph, checked before compiled code sees any number.

`gpn_scale.config` checks the limits that are the same for all graphs.
"""

from gpn_scale.config import PPRConfig
from gpn_scale.errors import ConfigError


def check_row_sizes(config: PPRConfig, num_nodes: int, *, k_is_given: bool = True) -> None:
    """Refuse rows with more entries than there are nodes.

    >>> check_row_sizes(PPRConfig(k=5), num_nodes=4)
    Traceback (most recent call last):
        ...
    gpn_scale.errors.ConfigError: k is 5, expected at most 4, the number of nodes

    Args:
        config: Settings of the build.
        num_nodes: Number of nodes of the graph.
        k_is_given: Whether k is checked; a target may replace it.

    Raises:
        ConfigError: `k` or `keep` is too large.
    """
    if k_is_given and config.k > num_nodes:
        raise ConfigError(
            f"k is {config.k}, expected at most {num_nodes}, the number of nodes", arguments=("k",)
        )
    if config.keep > 2 * num_nodes:
        raise ConfigError(
            f"keep is {config.keep}, expected at most {2 * num_nodes}, twice the number of nodes",
            arguments=("keep",),
        )
