"""PPRGo: APPNP trained on batches of stored PPR rows (Bojchevski et al., 2020)."""

from gpn_scale.baselines.row_batches import AbstractRowNetwork


class PPRGo(AbstractRowNetwork):
    """A perceptron trained on the strongest entries of PPR rows; predicts by exact diffusion."""

    name = "PPRGo"
