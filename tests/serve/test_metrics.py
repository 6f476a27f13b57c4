"""Figures for Prometheus, of one process and of several."""

import subprocess
import sys

from gpn_scale.serve.metrics import FOLDER_VARIABLE, ServiceMetrics


def test_requests_are_counted_by_route():
    metrics = ServiceMetrics(lambda: 3)
    metrics.observe("GET", "/nodes/{id}", 200, 0.004)
    metrics.observe("GET", "/nodes/{id}", 200, 0.4)
    metrics.observe("GET", "/nodes/{id}", 404, 0.001)
    metrics.show_model("old", "bank", "1")
    metrics.show_model("new", "bank", "1")
    metrics.count_reload("loaded")
    text = metrics.text().decode()
    assert 'gpn_requests_total{method="GET",route="/nodes/{id}",status="200"} 2.0' in text
    assert 'gpn_request_seconds_bucket{le="0.005",route="/nodes/{id}"} 2.0' in text
    assert 'gpn_request_seconds_count{route="/nodes/{id}"} 3.0' in text
    assert "gpn_slow_requests 3.0" in text
    assert 'gpn_model_info{graph="bank",model="new",version="1"} 1.0' in text
    assert "old" not in text
    assert 'gpn_reloads_total{result="loaded"} 1.0' in text


CODE = """
from gpn_scale.serve.metrics import ServiceMetrics
metrics = ServiceMetrics(lambda: 1)
metrics.observe("GET", "/health", 200, 0.1)
metrics.show_model("m", "bank", "1")
print(metrics.text().decode())
"""


def test_processes_add_up_their_figures(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert 'gpn_requests_total{method="GET",route="/health",status="200"} 2.0' in done.stdout
    assert 'gpn_model_info{graph="bank",model="m",version="1"} 1.0' in done.stdout
