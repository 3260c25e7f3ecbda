"""What makes two environments the same."""

from typing import Any

import pytest

from collector.results.identity import identify_environment
from factories import (
    make_environment,
    make_gpu,
)


@pytest.mark.parametrize(
    "changes",
    [
        {"cpu_model": "AMD EPYC"},
        {"num_visible_cores": 4},
        {"cpu_quota_cores": None},
        {"num_threads": 1},
        {"cpu_governor": "powersave"},
        {"python_version": "3.12.1"},
        {"versions": {"torch": "2.12.0", "numpy": "2.3.5"}},
        {"settings": {"cudnn.benchmark": True}},
        {"image": "sha256:00"},
        {"gpus": (make_gpu(),)},
    ],
)
def test_what_can_change_a_time_changes_the_environment_id(changes: dict[str, Any]) -> None:
    assert identify_environment(make_environment()) != identify_environment(make_environment(**changes))


@pytest.mark.parametrize(
    "changes", [{"name": "H100"}, {"driver_version": "1"}, {"cuda_version": "11"}, {"cudnn_version": None}]
)
def test_another_gpu_driver_or_library_changes_the_environment_id(changes: dict[str, Any]) -> None:
    same, other = make_environment(gpus=(make_gpu(),)), make_environment(gpus=(make_gpu(**changes),))
    assert identify_environment(same) != identify_environment(other)


@pytest.mark.parametrize("changes", [{"hostname": "bench-2"}, {"kernel": "6.2"}, {"git_revision": None}])
def test_another_host_of_the_same_kind_does_not_change_the_environment_id(changes: dict[str, Any]) -> None:
    assert identify_environment(make_environment()) == identify_environment(make_environment(**changes))
