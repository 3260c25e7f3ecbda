"""The folder that a case begins with: valid files of every kind that commands read, and a store with runs."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from access_scenarios import describe_scenario
from bench.schema import Cell, Cluster, Failure, Result, Run
from bench.store import Store
from factories import (
    START,
    make_cell,
    make_environment,
    make_failed_result,
    make_gpu,
    make_memory,
    make_placement,
    make_result,
    make_run,
    put_documents,
)
from fuzz.markers import SECRET
from fuzz.mutations import dump_csv, dump_json, dump_yaml
from node_faults import make_node_fault
from raw_removals import make_raw_removal

RUN_A, RUN_B = "nightly-1", "nightly-2"
TRAIN = make_cell()
GPU_CELLS = tuple(
    make_cell(model="resnet18", input_size=224, num_classes=10, device="gpu", batch_size=size) for size in (8, 64)
)
MATRIX: dict[str, Any] = {
    "name": "nightly",
    "description": "what the fuzzing measures",
    "axes": {"model": ["conv6"], "framework": ["pytorch", "jax"], "batch_size": [16, 64], "mode": ["compiled"]},
    "defaults": {"device": "cpu", "phase": "train", "num_steps": 5, "repeats": 2, "timeout_seconds": 60},
    "exclude": [{"framework": "jax", "batch_size": 64}],
    "include": [{"model": "resnet18", "framework": "pytorch", "batch_size": 8, "mode": "eager"}],
    "neighbours": {"other": {"model": "conv6", "phase": "infer", "batch_size": 1}},
}
PROFILE: dict[str, Any] = {
    "extends": "./base.yaml",
    "namespace": "lab",
    "labels": {"team": "vision"},
    "annotations": {"example.org/bill": "7"},
    "overlay": {"spec": {"dnsPolicy": "Default", "tolerations": [{"key": "x", "operator": "Exists"}]}},
    "pools": {"cpu": {"cpus": 2, "memory": "3Gi", "node_selector": {"a": "b"}, "price_per_hour": 0.5}},
    "registry": "registry.example/team",
    "environment": {"AWS_ENDPOINT_URL": "http://s3:9000"},
    "data": {"claim": "data", "mount_path": "/data"},
}
BASE_PROFILE: dict[str, Any] = {"extends": "k3s", "description": "the lab's", "gpu": "T4", "store_secret": "store"}
ON_SALE = {"cloud": "X", "region": "north", "date": "2026-01-01", "source": "our books"}
PRICES: dict[str, Any] = {
    "title": "Books",
    "currency": "EUR",
    "prices": [
        ON_SALE | {"machine": "m1", "price_per_hour": 2.0, "vcpus": 2},
        ON_SALE | {"machine": "m2", "price_per_hour": 4.0, "vcpus": 4, "purchase": "spot"},
        ON_SALE | {"machine": "g1", "price_per_hour": 3.0, "vcpus": 8, "gpu": "T4", "num_gpus": 1},
    ],
    "carbon": [{"cloud": "X", "region": "north", "grams_per_kwh": 360, "pue": 1.25, "year": 2025, "source": "grid"}],
    "power": [{"kind": "vcpu", "device": "any", "idle_watts": 1, "full_watts": 4, "date": "2026-01-01", "source": "m"}],
}  # fmt: skip
AUDIT: dict[str, Any] = {
    "title": "Made up",
    "source": "a test",
    "defaults": {"device": "Tesla T4", "phase": "infer"},
    "devices": [{"name": "Round", "source": "made up", "tflops": {"fp32": 1.0}}],
    "rows": [
        {
            "label": "a",
            "model": "resnet50",
            "framework": "pytorch",
            "precision": "fp32",
            "batch_size": 1,
            "milliseconds": 10.7,
        },
        {"label": "b", "model": "resnet50", "precision": "fp16", "samples_per_second": 1203.2},
        {
            "label": "c",
            "device": "Round",
            "flops_per_sample": 1e10,
            "batch_size": 10,
            "seconds": 1.0,
            "precision": "fp32",
        },
    ],
}
AUDIT_CSV = [
    ["label", "device", "model", "phase", "precision", "batch_size", "milliseconds", "samples_per_second"],
    ["a", "Tesla T4", "resnet50", "infer", "fp32", 1, 10.7, None],
    ["b", "Tesla T4", "resnet50", "infer", "fp16", 64, None, 1203.2],
]
GPUS = [
    ["name", "vendor", "release", "memory_gb", "segment", "source"],
    *(
        [f"GPU {year}", "NVIDIA", f"{year}-06", 2 ** (1 + (year - 2008) // 2), "datacenter", "datasheet"]
        for year in range(2008, 2024)
    ),
]
VALUES: list[list[Any]] = [
    ["Model", "date", "value", "Publication date", "Training compute (FLOP)", "Parameters"],
    *(
        [f"model {year}", f"{year}-03-01", 3.0 ** (year - 2008), f"{year}-03-01", 10.0 ** (year - 1990), 10.0**8]
        for year in range(2008, 2024)
    ),
]
COLUMNS: dict[str, list[Any]] = {name: [row[index] for row in VALUES[1:]] for index, name in enumerate(VALUES[0])}
KUBECONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "lab",
    "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me", "namespace": "lab"}}],
    "clusters": [{"name": "lab", "cluster": {"server": "API_SERVER", "insecure-skip-tls-verify": True}}],
    "users": [{"name": "me", "user": {"token": SECRET}}],
}
"""`API_SERVER` stands for the URL of the API server, which a case does not know."""


def write_workspace(folder: Path) -> None:
    """Write the files and the store."""
    trees = {"matrix": MATRIX, "profile": PROFILE, "base": BASE_PROFILE, "prices": PRICES, "audit": AUDIT}
    files = {f"{name}.yaml": tree for name, tree in trees.items()}
    for name, tree in (files | {"scenario.yaml": describe_scenario(), "kubeconfig": KUBECONFIG}).items():
        (folder / name).write_bytes(dump_yaml(tree))
    for name, rows in {"audit.csv": AUDIT_CSV, "gpus.csv": GPUS, "values.csv": VALUES}.items():
        (folder / name).write_bytes(dump_csv(rows))
    pd.DataFrame(COLUMNS).to_parquet(folder / "values.parquet")
    (folder / "probe.json").write_bytes(dump_json(make_probe()))
    (folder / "old.md").write_text("what was there before\n")
    (folder / "home").mkdir()
    (folder / "bin").mkdir()
    for name in ("docker", "plugin"):
        (folder / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / "bin" / name).chmod(0o755)
    put_runs(Store.open(f"file://{folder}/results"))


def make_probe() -> dict[str, Any]:
    """Return what `benchmatrix probe --json` prints."""
    trial = {"batch_size": 64, "outcome": "fits", "seconds": 1.0, "peak_bytes": 2**30, "available_bytes": 2**34}
    cell = json.loads(GPU_CELLS[1].model_dump_json())
    return {
        "cell": cell,
        "gpu": "Tesla T4",
        "max_batch_size": 1024,
        "time_limit_seconds": 60.0,
        "memory_limit_bytes": None,
        "tries": [trial],
        "ended_by": "found",
        "largest_batch_size": 64,
        "smallest_failing_batch_size": 128,
    }


def make_stored_run(run_id: str, cells: tuple[Cell, ...]) -> Run:
    """Return a run of two repeats on a cluster."""
    cluster = Cluster(context="lab", namespace="lab", profile="k3s", queue="q")
    day = timedelta(days=int(run_id[-1]))
    return make_run(
        cells,
        repeats=2,
        run_id=run_id,
        matrix="nightly",
        created_at=START + day,
        executor="kubernetes",
        cluster=cluster,
    )


def make_stored_result(run_id: str, cell: Cell, repeat: int) -> Result:
    """Return the result of a repeat on a machine with a GPU."""
    gpus = (make_gpu(),) if cell.device == "gpu" else ()
    return make_result(
        cell,
        run_id=run_id,
        repeat=repeat,
        step_seconds=(0.1, 0.101 + repeat / 1e4, 0.099),
        memory=make_memory(peak_memory_allocated_bytes=2**28 + cell.batch_size * 2**20),
        environment=make_environment(gpus=gpus),
    )


def put_runs(store: Store) -> None:
    """Store two runs of three cells with documents of every kind beside their results."""
    cells = (TRAIN, *GPU_CELLS)
    for run_id in (RUN_A, RUN_B):
        run = make_stored_run(run_id, cells)
        results = [make_stored_result(run_id, cell, repeat) for cell in cells for repeat in (1, 2)]
        if run_id == RUN_A:
            oom = Failure(kind="out-of-memory", message="it broke", stderr_tail="tail", bytes_requested=2**33)
            results[-1] = make_failed_result(GPU_CELLS[1], status="oom", error=oom, run_id=run_id, repeat=2)
        put_documents(store, run, results)
    for key, document in make_beside().items():
        store.put(key, document)


def make_beside() -> dict[str, bytes]:
    """Return documents of a run that are neither its plan nor results, by their keys."""
    result = make_stored_result(RUN_A, TRAIN, 1)
    name = f"{result.cell_id}/1-a1.json"
    fault = make_node_fault(make_stored_run(RUN_A, (TRAIN,)), attempt="a0")
    removal = make_raw_removal([make_stored_result(RUN_B, TRAIN, 2).model_copy(update={"attempt": "a9"})])
    return {
        f"runs/{RUN_A}/placements/{name}": make_placement(result).to_json(),
        f"runs/{RUN_A}/node-faults/{name}": fault.to_json(),
        f"runs/{RUN_B}/raw-removals/r1.json": removal.to_json(),
        f"runs/{RUN_A}/interrupted/{name}": make_stored_result(RUN_A, TRAIN, 2).to_json(),
    }
