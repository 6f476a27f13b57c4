from gpn_scale.experiments.catalogue import EXPERIMENTS as CATALOGUE
from gpn_scale.experiments.leaderboard_columns import COLUMNS, COSTS, EXPERIMENTS, TASKS


def test_columns_have_names_of_their_own_and_known_experiments():
    columns = (*COLUMNS, *COSTS)
    for names in ([c.name for c in columns], [c.heading for c in columns]):
        assert len(set(names)) == len(columns)
    assert set(EXPERIMENTS) <= set(CATALOGUE)
    assert len(TASKS) == 5


def test_a_column_is_that_of_the_declared_score():
    by_name = {column.name: column for column in COLUMNS}
    unknown = by_name["auroc_unknown"]
    assert unknown.metric_of("GPN") == "auroc_epistemic"
    assert unknown.metric_of("APPNP") == "auroc_aleatoric"
    assert unknown.metric_of("GPN+") == "auroc_p_known"
    assert by_name["accuracy"].metric_of("LP") == "accuracy"


def test_arrows_point_to_better_numbers():
    arrows = {column.heading: column.arrow_heading[-1] for column in COLUMNS}
    down = {heading for heading, arrow in arrows.items() if arrow == "↓"}
    assert down == {"ECE", "NLL", "left-out, FPR95"}
