"""Names of Jobs: Kubernetes takes them, and no two Jobs share one."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.registry import FRAMEWORKS, MODELS
from factories import make_cell
from runner.kubernetes.names import JobKey, select_run

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
CELL_IDS = st.from_regex(r"[a-z0-9-]{1,54}-[0-9a-f]{8}", fullmatch=True)
KEYS = st.builds(
    JobKey,
    run_id=NAMES,
    cell_id=CELL_IDS,
    number=st.integers(min_value=1, max_value=10**9),
    retry_round=st.integers(min_value=0, max_value=10**6),
    fingerprint=st.from_regex(r"[0-9a-f]{12}", fullmatch=True),
)
DNS_1123 = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


@settings(max_examples=500)
@given(KEYS)
def test_a_job_has_a_name_that_leaves_room_for_its_pods(key: JobKey) -> None:
    assert DNS_1123.fullmatch(key.job_name)
    assert len(key.job_name) <= 53


@settings(max_examples=300)
@given(st.lists(KEYS, min_size=2, max_size=20, unique=True))
def test_two_jobs_never_have_the_same_name(keys: list[JobKey]) -> None:
    assert len({key.job_name for key in keys}) == len(keys)


@given(KEYS)
def test_each_part_of_a_key_changes_the_name(key: JobKey) -> None:
    parts = {name: getattr(key, name) for name in ("run_id", "cell_id", "number", "retry_round", "fingerprint")}
    others = [
        parts | {"run_id": f"a{key.run_id}"},
        parts | {"cell_id": f"a{key.cell_id}"},
        parts | {"number": key.number + 1},
        parts | {"retry_round": key.retry_round + 1},
        parts | {"fingerprint": key.fingerprint[::-1] + "0"},
    ]
    assert key.job_name not in {JobKey(**other).job_name for other in others}


def test_a_name_is_the_same_on_every_machine() -> None:
    # printf of the five parts, a line each, through sha256sum
    key = JobKey(
        run_id="smoke-1",
        cell_id="conv6-pytorch-cpu-train-fp32-eager-b64-7890d9fa",
        number=2,
        retry_round=0,
        fingerprint="0123456789ab",
    )
    assert key.job_name == "conv6-pytorch-cpu-train-fp32-eager-b64-321952e175da"


def test_every_cell_of_the_catalogue_gives_a_name_that_begins_with_its_model() -> None:
    for name, spec in MODELS.items():
        for framework, framework_spec in FRAMEWORKS.items():
            cell = make_cell(
                model=name,
                framework=framework,
                mode=framework_spec.modes[0],
                phase=spec.phases[0],
                input_size=spec.input_size,
                num_classes=spec.num_classes,
            )
            key = JobKey(run_id="demo", cell_id=cell.cell_id, number=1, retry_round=0)
            assert key.job_name.startswith(f"{name}-{framework}"[:40])
            assert DNS_1123.fullmatch(key.job_name)


def test_a_selector_takes_the_jobs_of_one_run_alone() -> None:
    assert (
        select_run("mine-1")
        == "app.kubernetes.io/name=benchmatrix,app.kubernetes.io/component=cell,benchmatrix/run-id=mine-1"
    )
    assert (
        select_run("mine-1", fingerprint="0123456789ab")
        == f"{select_run('mine-1')},benchmatrix/fingerprint=0123456789ab"
    )
