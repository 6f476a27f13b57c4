from gpn_scale.cli import evaluate_stores
from gpn_scale.cli.evaluate_stores import build_stores
from gpn_scale.distributed import World
from gpn_scale.experiments.request import MatrixRequest
from gpn_scale.ppr.store import PPRStore

SMALL = "synthetic:nodes=200,classes=4,unseen_classes=0,features=6"


def request(tmp_path, *models):
    return MatrixRequest(
        out=tmp_path, datasets=(SMALL,), models=models, experiments=("clean",), splits=2, inits=1
    )


def test_every_store_is_built_once(tmp_path, monkeypatch):
    built = []
    monkeypatch.setattr(evaluate_stores, "build_rows", lambda *facts: built.append(facts))
    own = request(tmp_path, "GPN", "GPN-minibatch", "PPRGo", "LP", "PostNet")
    build_stores(own, own.cells, World())
    stores = sorted({own.store_path(SMALL, own.setting(cell)) for cell in own.cells} - {None})
    assert sorted(facts[3] for facts in built) == stores
    assert len(stores) == 2


def test_models_without_rows_build_nothing(tmp_path):
    own = request(tmp_path, "LP", "PostNet")
    build_stores(own, own.cells, World())
    assert not list(tmp_path.iterdir())


def test_a_built_store_is_of_the_graph_and_the_diffusion(tmp_path):
    own = request(tmp_path, "PPRGo")
    build_stores(own, own.cells, World())
    setting, graph = own.setting(own.cells[0]), own.graph(SMALL)
    path = own.store_path(SMALL, setting)
    store = PPRStore.open(path, graph_fingerprint=graph.structure_fingerprint())
    for name, value in setting.row_diffusion.store_parameters.items():
        assert store.parameters[name] == value
