from gpn_scale.config import RunConfig
from gpn_scale.page.facts import RunFacts
from tests.page.samples import training_curves


def test_facts_of_a_run_that_has_not_finished_are_few():
    facts = RunFacts(config=RunConfig(model="GPN"), training=training_curves())
    assert (facts.report, facts.prediction, facts.missing) == (None, None, ())
