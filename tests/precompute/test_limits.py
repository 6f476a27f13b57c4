import pytest

from gpn_scale.config import PPRConfig
from gpn_scale.errors import ConfigError
from precompute.limits import check_row_sizes


def test_rows_have_at_most_as_many_entries_as_there_are_nodes():
    check_row_sizes(PPRConfig(k=4, keep=8), 4)
    check_row_sizes(PPRConfig(k=64), 4, k_is_given=False)
    with pytest.raises(ConfigError, match="k is 5, expected at most 4, the number of nodes"):
        check_row_sizes(PPRConfig(k=5), 4)
    with pytest.raises(ConfigError, match="keep is 9, expected at most 8, twice the number"):
        check_row_sizes(PPRConfig(k=4, keep=9), 4)
