import json

import pytest

from gpn_scale.data.import_rules import ImportRules
from gpn_scale.errors import ConfigError


def test_rules_survive_json():
    rules = ImportRules(unknown_ids="add", kinds={"zip": "category"}, directed=True)
    assert ImportRules(**json.loads(json.dumps(rules.to_dict()))) == rules


@pytest.mark.parametrize(
    ("rules", "message", "arguments"),
    [
        ({"unknown_ids": "x"}, "unknown_ids is 'x', expected one of refuse, add, drop",
         ("unknown_ids",)),
        ({"missing": "x"}, "missing is 'x', expected one of flag, fill, refuse", ("missing",)),
        ({"structural_features": True}, "structural_features is True, expected one of auto, on",
         ("structural_features",)),
        ({"kinds": {"a": "x"}}, "kinds has 'x' for the column 'a', expected one of number",
         ("kinds",)),
        ({"unknown_ids": "add", "missing": "refuse"}, "choose another rule for one of them",
         ("unknown_ids", "missing")),
    ],
)  # fmt: skip
def test_wrong_rules_are_refused(rules, message, arguments):
    with pytest.raises(ConfigError, match=message) as error:
        ImportRules(**rules)
    assert error.value.arguments == arguments
