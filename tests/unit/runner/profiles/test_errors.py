"""Errors in a profile: file, line, key, and the words, each message once."""

from pathlib import Path

import pytest

from profile_files import catch_error, write


@pytest.mark.parametrize("base", ["mine.yaml", "./mine.yaml", "sub/../mine.yaml", "other.yaml", "link.yaml"])
def test_a_cycle_is_refused_however_it_is_written(tmp_path: Path, base: str) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path, "extends: mine.yaml\n", "other.yaml")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "mine.yaml")
    error = catch_error(tmp_path, f"\nextends: {base}\n")
    place = ("other.yaml", 1) if base == "other.yaml" else ("mine.yaml", 2)
    assert (Path(error.file).name, error.line, error.key) == (*place, "extends")


def test_an_error_in_an_extended_file_names_that_file(tmp_path: Path) -> None:
    base = write(tmp_path, "extends: kind\n\npools: {cpu: {cpus: many}}\n", "base.yaml")
    error = catch_error(tmp_path, "extends: base.yaml\n")
    assert (error.file, error.line, error.key) == (base, 3, "pools.cpu.cpus")


ODD = "pools: {cpu: {node_affinity: [[{key: a, operator: "
MESSAGES = [
    ("extends: [gke]", "1: extends: found no name, expected a profile: "),
    ("extends: gke\nimage_pull_secrets: [a, -b]", "2: image_pull_secrets[1]: found the text '-b', expected a name "),
    ("extends: gke\npools: {cpu: {node_selector: {a/b/c: d}}}", "2: pools.cpu.node_selector.'a/b/c': found the key "),
    ("extends: gke\ngpu_kinds: {T5: {}}", "2: gpu_kinds: unknown key; "),
    ("extends: gke\ngpu: {name: 4}", "2: gpu.name: found the number 4, expected a text"),
    (f"extends: {'a' * 300}.yaml", "1: extends: found 'aaa"),  # longer than the name of a file can be
    ("", "1: the file is empty, expected a profile; write `extends: gke`, for example, and what differs"),
    (
        "extends: gkee",
        "1: extends: found 'gkee', expected a profile: aks, eks, eks-auto, gke, gke-autopilot, k3s, kind, openshift or "
        "the path of a .yaml file, seen from the folder of this one; did you mean 'gke'?",
    ),
    ("pools: {}", "1: pools: is empty; write `cpu` or `gpu` below it, with `cpus` and `memory`"),
    ("extends: gke\nlabels: {benchmatrix/pool: x}", "2: labels: benchmatrix/pool is set by the tool; take another key"),
    (
        "extends: gke\noverlay: {spec: {containers: [{name: bench, env: [null]}]}}",
        "2: overlay.spec.containers[0].env[0]: expected a variable with `name` and `value`",
    ),
    (
        "extends: gke\nenvironment: {HOME: x}",
        "2: environment.HOME: found the key 'HOME', expected a variable's name: letters, "
        "digits and '_', no digit first; HOME and BENCH_... are set by the tool",
    ),
    (
        "extends: gke\nenvironment: {AWS_SECRET_ACCESS_KEY: hunter2}",
        "2: environment.AWS_SECRET_ACCESS_KEY: is a credential, which would stand in every Job; put it into a Secret "
        "of the namespace, for the store as `store_secret`, for others as `valueFrom.secretKeyRef` of a variable in "
        "the overlay",
    ),
    (
        "extends: gke\npools: {cpu: {memory: 4GB}}",
        "2: pools.cpu.memory: found the text '4GB', expected an amount of bytes such as `12Gi` or `500M` (a "
        "whole number and Ki, Mi, Gi, Ti, k, M, G, T)",
    ),
    (
        f"extends: gke\n{ODD}In}}]]}}}}",
        "2: pools.cpu.node_affinity[0][0].values: is missing or empty; `In` needs a list of at least one",
    ),
    (
        "extends: gke\npools: {gpu: {cpus: 2, memory: 1Gi}}\ngpu: null",
        "3: gpu: is missing; say what GPUs the nodes of the pool `gpu` have",
    ),
    (
        "extends: gke\ngpu: A10G",
        "2: gpu.name: found 'A10G', expected T4, L4, A100, H100; did you mean 'A100'? Or, for another GPU, write its "
        "compute_capability and max_per_node, and all of pools.gpu",
    ),
    (
        "extends: kind\ngpu: T4",
        "2: gpu.name: found 'T4', but this profile knows no GPU by a word; for another GPU, write its "
        "compute_capability and max_per_node, and all of pools.gpu",
    ),
    (
        "extends: gke\npools: {gpu: {cpus: 3, has_exclusive_cores: true}}",
        "2: pools.gpu.cpus: 3 is odd; a kubelet with full-pcpus-only gives whole physical cores, which have two CPUs "
        "each, and refuses the pod (SMTAlignmentError): take an even number",
    ),
    (
        "extends: kind\ngpu: {name: x, compute_capability: [7, 5], max_per_node: 1}",
        "2: gpu: there is no pool `gpu`; write pools.gpu, or `gpu: null`",
    ),
]


@pytest.mark.parametrize(("text", "message"), MESSAGES, ids=[message[:40] for _, message in MESSAGES])
def test_an_error_says_what_was_expected_and_how_to_fix_it(tmp_path: Path, text: str, message: str) -> None:
    error = str(catch_error(tmp_path, text))
    assert error.startswith(f"{tmp_path}/mine.yaml:{message}")
    assert len(error) - len(str(tmp_path)) < 500
