import numpy as np
import pytest

from gpn_scale.evaluation.metrics import reliability
from gpn_scale.page.reliability_chart import reliability_chart
from tests.page.drawings import parsed


@pytest.mark.parametrize("count", [0, 1, 200])
def test_reliability_of_any_number_of_nodes(count):
    rng = np.random.default_rng(0)
    bins = reliability(rng.dirichlet(np.ones(3), count), rng.integers(0, 3, count))
    root = parsed(reliability_chart("r", "title", bins))
    labels = [part.get("aria-label") for part in root.iter() if part.get("aria-label")]
    bars = [label for label in labels if "with a mean confidence of" in label]
    assert len(bars) == 2 * (bins.count_B > 0).sum()  # a bar and a disc each
