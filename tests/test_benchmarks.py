"""Every benchmark runs at its smallest size, and no default needs data that must be prepared."""

import ast
import importlib
import json
import signal
import sys
from pathlib import Path

import numba
import pytest
import torch

from gpn_scale.config import PPRConfig, RunConfig, override
from gpn_scale.data.datasets import DATASET_NAMES, load_graph
from gpn_scale.data.npz import write_npz
from gpn_scale.data.splits import prepare_graph
from gpn_scale.estimator import GPNClassifier
from gpn_scale.experiments.request import MatrixRequest
from gpn_scale.experiments.run_matrix import run_matrix
from gpn_scale.ppr.manifest import SECONDS
from precompute import coarsening
from precompute.build import build_store

REPOSITORY = Path(__file__).parents[1]
SCRIPTS = sorted((REPOSITORY / "benchmarks").glob("*.py"))
DATASET = "synthetic:nodes=600,classes=3,unseen_classes=0,features=8"
WITH_JSON = {
    "bench_checksums": (
        f"--dataset {DATASET} --nodes 50 --repeats 1 --work WORK --batch-size 32",
        "store_mib",
    ),
    "bench_clusters": (f"--dataset {DATASET} --clusters 4 --metis-edges 500", "cut"),
    "bench_exact_memory": (
        f"--dataset {DATASET} --epochs 1 --memory-mib 1",
        "peak_rss_training_mib",
    ),
    "bench_flow": (
        "--nodes 200 --classes 3 --layers 2 --latent 4 --threads 1 --repeats 1",
        "forward_memory_ratio",
    ),
    "bench_import": ("--nodes 200 --edges 900 --columns 5 --work WORK", "peak_rss_mib"),
    "bench_inference": (
        f"--dataset {DATASET} --budgets-mib 64 --repeats 1 --threads 1",
        "budget_64_mib",
    ),
    "bench_inputs": (
        "--nodes 40 --features 30 --hidden 2 --fractions 0.1,0.5 --repeats 1",
        "0.5",
    ),
    "bench_isolated": (f"--datasets {DATASET} --repeats 1", "ratio"),
    "bench_label_next": ("--nodes 500 --k 8 --count 5 --repeats 1", "columns_looked_at"),
    "bench_long_run": ("--work WORK --modes exact --steps 20 --pause 0.05", "growth"),
    "bench_live": (f"--dataset {DATASET} --epochs 2 --requests 2 --threads 1", "after"),
    "bench_serve": (f"--dataset {DATASET} --work WORK --seconds 0.5 --connections 2", "known"),
    "bench_batches": (
        f"--dataset {DATASET} --ppr STORE --batch-size 8 --batches 1",
        "clustered",
    ),
    "bench_ppr_scaling": ("size --nodes 600 --roots 50", "planned_over_actual_memory"),
    "bench_ppr_throughput": (
        f"--dataset {DATASET} --threads 1 --repeats 1 --sample 9 --pyg-roots 9 --settings 0",
        "times_pyg",
    ),
    "bench_arxiv": (
        f"--dataset {DATASET} --work WORK --left-out-classes 1 --exact-epochs 1 "
        "--minibatch-epochs 1 --threads 1",
        "rows_spearman",
    ),
}
"""Arguments of scripts that print JSON, and a key of the last line."""
ABLATION = (
    "--datasets synthetic:nodes=600,classes=4,unseen_classes=0,features=8 --splits 1 "
    "--class-sets 0 --left-out-classes 1 --epochs 2 --values VALUES"
)
WITH_TABLES = {
    "ablation_parts": (ABLATION, "| all parts (the default) | "),
    "ablation_rates": (
        ABLATION.replace("--values VALUES", "--factors 1,5"),
        "| mean minus 1, paired | 5 | ",
    ),
    "ablation_temperature": (ABLATION.replace("--values VALUES", ""), "| temperature by energy | "),
    "bench_models": (
        f"--dataset {DATASET} --work WORK --models LP --left-out-classes 1",
        "| LP | 9",
    ),
    "bench_plan": ("--here --datasets synthetic/nodes=300:3:1", "planned_seconds"),
    "bench_ppr_rivals": (
        f"--dataset {DATASET} --packages topk_ppr,igraph,fast-pagerank,scikit-network --roots 4 "
        "--k 4 --repeats 1 --threads 1",
        "| topk_ppr, push | ",
    ),
    "bench_rows": ("--work WORK --ks 4 --threads 1 MODEL", "| clustered, P = 8 | 0.9"),
    "bench_update": (f"--dataset {DATASET} --edges 3 --nodes 2 --k 4 --clusters 2", "| 3 edges | "),
    "check_gpu": ("--device cpu --nodes 400 --epochs 1", "rules for GPUs: agrees with the CPU; "),
    "label_next": (
        "--datasets synthetic:nodes=600,classes=4,unseen_classes=0,features=8 --seeds 1 "
        "--counts 4 --strategies random,coverage --left-out-classes 1 --epochs 1 --values VALUES",
        "| coverage | ",
    ),
    "leaderboard": ("--cells WORK --matrix MATRIX", "models on CoraML, with 1 split and"),
    "paper_readings": ("--matrix MATRIX --data-dir DATA", "| CoraML | 1 | all test nodes |"),
    "review_order": (ABLATION, "| probability x sqrt(p_known) | "),
    "results_models": ("--matrix MATRIX", "| CoraML | GPN | 1 |"),
    "results_paper": ("--matrix MATRIX", "| CoraML | GPN | 1 |"),
}
"""Arguments of scripts that print Markdown, and a piece of it."""
SLOW = pytest.mark.slow
NOT_RUN = {
    "ablation_case": "it is called by ablation_parts",
    "ablation_study": "it is called by ablation_parts",
    "ablation_encoders": "it is called by ablation_parts",
    "ablation_measures": "it is called by ablation_parts",
    "bench_bf16": "it trains three models for each seed",
    "bench_compile": "compiling takes a minute or two",
    "bench_charts": "it needs charting libraries that are no requirement",
    "bench_page": "it needs Chromium and a page",
    "bench_ranks": "several runs of torchrun take longer",
    "hostile_trials": "it has tests of its own, test_hostile_trials.py",
    "fuzz": "it needs atheris; test_fuzz.py calls its targets",
    "fuzz_edits": "it is called by fuzz_targets",
    "fuzz_targets": "it is called by fuzz, and by test_fuzz.py",
    "install_size": "test_install_size.py runs it over made-up packages",
    "kill_trials": "several runs of torchrun take longer",
    "minibatch_scaling_report": "it is called by bench_minibatch_scaling",
    "readme_picture": "it needs a run of the demo; test_readme_picture.py draws another one",
    "trial_processes": "it is called by kill_trials",
    "trial_subjects": "it is called by kill_trials",
}


def calls_of(path, name):
    """Calls of the method `name` in a script, such as `parser.add_argument(...)`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", None) == name:
            yield node


def arguments_of(path):
    """Name of each argument of a script, and its keyword arguments as source text."""
    for call in calls_of(path, "add_argument"):
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        yield ast.literal_eval(call.args[0]), keywords


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_can_be_imported_and_says_what_it_asks(path, monkeypatch):
    monkeypatch.syspath_prepend(str(path.parent))
    module = importlib.import_module(path.stem)
    assert module.__doc__.splitlines()[0].endswith(("?", "."))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_no_default_needs_a_file_outside_the_repository(path):
    for name, keywords in arguments_of(path):
        default = keywords.get("default", "None")
        if "dataset" in name:
            generated = default.strip("'\"").startswith("synthetic")
            assert generated or default == "None", f"{name} of {path.name} has a default dataset"
        words = set(default.replace("'", ",").replace('"', ",").split(","))
        assert not words & {*DATASET_NAMES, "ogbn-arxiv-sim"}, f"{name} of {path.name}: {default}"
        if default.startswith("Path("):
            location = Path(ast.literal_eval(ast.parse(default).body[0].value.args[0]))
            assert not location.is_absolute(), f"{name} of {path.name}: {default}"
            assert ".." not in location.parts, f"{name} of {path.name}: {default}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_that_reads_data_asks_which(path):
    arguments = dict(arguments_of(path))
    if "--data-dir" in arguments:
        asks = {"--dataset", "--datasets", "models"} & arguments.keys()
        assert asks, f"{path.name} has --data-dir, but no argument for the dataset"


def test_the_arguments_of_this_test_are_found(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("parser.add_argument('--dataset', default='CoraML', help='a')\n")
    assert dict(arguments_of(script)) == {"--dataset": {"default": "'CoraML'", "help": "'a'"}}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """What benchmarks read, by the placeholder in their arguments: a store, a model, a matrix."""
    folder = tmp_path_factory.mktemp("inputs")
    graph = load_graph(DATASET)
    build_store(graph, PPRConfig(k=8, clusters=4), folder / "store")
    config = override(RunConfig(model="GPN"), [("data.dataset", DATASET), ("train.epochs", "1")])
    model = GPNClassifier(config).fit(prepare_graph(graph, config))
    model.save(folder / "model.safetensors")
    data = folder / "data"
    data.mkdir()
    write_npz(load_graph(DATASET.replace("classes=3", "classes=7", 1)), data / "CoraML.npz")
    request = MatrixRequest(
        out=folder / "matrix",
        datasets=("CoraML",),
        models=("GPN",),
        experiments=("clean",),
        splits=1,
        inits=1,
        changes=("train.epochs=1", "data.feature_scaling=none"),
        data_dir=data,
    )
    run_matrix(request)
    return {
        "STORE": folder / "store",
        "MODEL": folder / "model.safetensors",
        "MATRIX": folder / "matrix",
        "DATA": data,
    }


@pytest.fixture
def run(inputs, tmp_path, monkeypatch, capfd):
    """Run a script in this process, and return what it prints; settings of libraries are reset."""
    monkeypatch.setattr(coarsening, "METIS_EDGES", coarsening.METIS_EDGES)
    threads = torch.get_num_threads(), numba.get_num_threads()
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    monkeypatch.chdir(tmp_path)

    def run_script(name, arguments):
        places = inputs | {"WORK": tmp_path / "work", "VALUES": tmp_path / "values.jsonl"}
        words = [str(places.get(word, word)) for word in arguments.split()]
        script = REPOSITORY / "benchmarks" / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(script), *words])
        importlib.import_module(name).main()
        return capfd.readouterr().out

    handler = signal.getsignal(signal.SIGTERM)
    yield run_script
    signal.signal(signal.SIGTERM, handler)
    torch.set_num_threads(threads[0])
    numba.set_num_threads(threads[1])


def test_every_benchmark_runs_here_or_has_a_reason_not_to():
    names = [*WITH_JSON, *WITH_TABLES, "bench_minibatch_scaling", *NOT_RUN]
    assert sorted(names) == [path.stem for path in SCRIPTS]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SLOW if name == "bench_arxiv" else ()) for name in WITH_JSON]
)
def test_a_benchmark_prints_its_measurements(name, run):
    arguments, key = WITH_JSON[name]
    assert key in json.loads(run(name, arguments).splitlines()[-1])


@pytest.mark.parametrize("name", WITH_TABLES)
def test_a_benchmark_prints_its_table(name, run):
    arguments, piece = WITH_TABLES[name]
    assert piece in run(name, arguments)


def test_without_a_gpu_the_comparison_says_so_in_one_sentence(run, monkeypatch, capfd):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as ended:
        run("check_gpu", "--device cuda:99")
    assert ended.value.code == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("device 'cuda:99' cannot be used")
    assert "`--device cpu` compares the rules" in line


@SLOW
def test_measurements_of_growth_become_a_page(run, tmp_path):
    arguments = "--sizes 600 --work WORK --threads 1 --epochs 1"
    stages = [json.loads(line) for line in run("bench_minibatch_scaling", arguments).splitlines()]
    assert [each["stage"] for each in stages] == ["graph", "precompute", "train", "predict"]
    assert run("bench_minibatch_scaling", arguments) == ""  # nothing is measured twice
    run("bench_minibatch_scaling", f"--work WORK --report {tmp_path}")
    assert "| 600 | precompute |" in next(tmp_path.glob("*.md")).read_text(encoding="utf-8")
    assert next(tmp_path.glob("*.svg")).read_text(encoding="utf-8").startswith("<svg")


def test_the_parts_of_the_ablation_are_joined_as_the_model_joins_them(run, tmp_path):
    printed = run("ablation_parts", ABLATION)
    (record,) = (tmp_path / "values.jsonl").read_text(encoding="utf-8").splitlines()
    value = {tuple(key): v for *key, v in json.loads(record)["values"]}
    default = "parts", "all parts (the default)"
    assert value[(*default, "auroc")] == pytest.approx(value["surroundings", "1", "left-out"])
    for noise in ("bernoulli", "normal"):
        by_model = value["surroundings", "1", f"{noise} p_known"]
        assert value[(*default, noise)] == pytest.approx(by_model, abs=0.01)
    assert value["encoders", "separate", "left-out p_known"] == value[(*default, "auroc")]
    assert (
        value["encoders", "separate", "accuracy"] == value["probabilities", "opinion", "accuracy"]
    )
    assert run("ablation_parts", ABLATION) == printed  # nothing is measured twice


def test_measurements_are_used_again_by_the_same_script_and_options_alone(run, tmp_path):
    path = tmp_path / "values.jsonl"
    for name, more, count in (
        ("review_order", "", 1),
        ("review_order", "", 1),
        ("review_order", " --set encoder.latent=3", 2),
        ("ablation_temperature", "", 3),
        ("review_order", "", 3),
    ):
        run(name, ABLATION + more)
        assert len(path.read_text(encoding="utf-8").splitlines()) == count


def test_without_left_out_classes_the_ablation_compares_probabilities_alone(run):
    printed = run("ablation_parts", ABLATION.replace("classes 1", "classes 0"))
    assert "| opinion and GPN, pooled in logs | " in printed
    assert "| all parts (the default) | " not in printed
    assert "nan" not in printed


def test_batches_that_are_too_few_are_refused(run, capfd):
    with pytest.raises(SystemExit, match="2"):
        run("bench_batches", f"--dataset {DATASET} --ppr STORE --batch-size 16")
    assert "30 training nodes make 1 whole batches" in capfd.readouterr().err


@pytest.fixture
def subjects(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    return importlib.import_module("trial_subjects")


def test_the_time_of_a_build_is_no_result_of_it(tmp_path, subjects):
    (tmp_path / "store").mkdir()
    for name in ("a", SECONDS):
        (tmp_path / "store" / name).write_text("1")
    before = subjects.store_digests(tmp_path)
    (tmp_path / "store" / SECONDS).write_text("2")
    assert subjects.store_digests(tmp_path) == before
    (tmp_path / "store" / "a").write_text("2")
    assert subjects.store_digests(tmp_path) != before


def test_the_time_of_a_run_is_no_result_of_it(tmp_path, subjects):
    (tmp_path / "run").mkdir()

    def digests(model, **report):
        (tmp_path / "run" / "model.safetensors").write_text(model)
        (tmp_path / "run" / "report.json").write_text(json.dumps(report))
        return subjects.run_digests(tmp_path)

    before = digests("a", seconds=1, epochs=3)
    assert digests("a", seconds=2, epochs=3) == before
    assert digests("a", seconds=1, epochs=4) != before
    assert digests("b", seconds=1, epochs=3) != before


def test_temporary_files_of_trials_are_counted(tmp_path, subjects):
    (tmp_path / "run").mkdir()
    for name in ("report.json", ".report.json.17.tmp", ".lock"):
        (tmp_path / "run" / name).touch()
    assert subjects.temporary_files(tmp_path) == ["run/.report.json.17.tmp"]


def test_the_sentence_of_a_failed_trial_is_its_last_error(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    ended = importlib.import_module("trial_processes").Ended
    assert ended(2, 1.0, "a\nerror: b is c\n").sentence == "b is c"
    assert ended(0, 1.0, "a\n").sentence == ""
