"""Peaks of hosts, and the roofline, against numbers by hand."""

import json
import tempfile
from pathlib import Path

import pytest

from bench.harness import DeviceTimer
from bench.host_peak import SIZES, find_host_peaks, locate_cache, measure_matrix_product, read_cache
from bench.peaks import Peaks
from bench.probes.cpu_use import CpuCounters
from bench.roofline import find_bound, make_roofline
from bench.schema import Cell, Device
from factories import make_cell

# The roofline


def make_peaks(flops: float | None = 1e12, bandwidth: float | None = 1e11, cache_bytes: int = 0) -> Peaks:
    return Peaks(flops_per_second=flops, bytes_per_second=bandwidth, cache_bytes=cache_bytes, source="by hand")


@pytest.mark.parametrize(
    ("peaks", "expected"),
    [
        (make_peaks(), (0.02, "memory")),  # 2e9 bytes at 1e11
        (make_peaks(flops=1e11), (0.1, "arithmetic")),  # 1e10 operations at 1e11
        # Of 2e9 bytes a cache of 4e8 keeps 4e8 from being read and 4e8 from being written.
        (make_peaks(cache_bytes=400_000_000), (pytest.approx(0.012), "memory")),
        (make_peaks(cache_bytes=1_000_000_000), (0.01, "arithmetic")),
        (make_peaks(bandwidth=None), (0.01, "arithmetic")),
        (make_peaks(flops=None), (None, None)),
    ],
)
def test_the_bound_is_the_longer_of_the_two_times(peaks: Peaks, expected: tuple[float | None, str | None]) -> None:
    assert find_bound(10**10, 2 * 10**9, peaks) == expected


def test_the_share_of_the_peak_is_achieved_over_possible() -> None:
    cell = make_cell(model="matmul", phase="infer", input_size=1000, num_classes=None, batch_size=1)
    roofline = make_roofline(cell, 0.01, make_peaks(flops=1e12))
    assert (roofline.flops_per_step, roofline.min_bytes_per_step) == (2 * 10**9, 12 * 10**6)
    assert (
        roofline.achieved_flops_per_second,
        roofline.share_of_peak,
        roofline.min_step_seconds,
        roofline.bound,
        roofline.share_of_roofline,
    ) == (2e11, 0.2, 0.002, "arithmetic", 0.2)


def test_without_peaks_what_was_achieved_stands_alone() -> None:
    roofline = make_roofline(make_cell(), 0.1, make_peaks(flops=None, bandwidth=None))
    assert roofline.achieved_flops_per_second > 0
    assert (roofline.share_of_peak, roofline.bound, roofline.share_of_roofline) == (None, None, None)


def test_the_work_of_several_gpus_is_that_of_all() -> None:
    cell = make_cell(device="gpu", batch_size=64, num_gpus=4)
    single = make_roofline(cell.model_copy(update={"num_gpus": 1}), 0.1, make_peaks())
    several = make_roofline(cell, 0.1, make_peaks())
    assert single.flops_per_step == several.flops_per_step
    # Three more copies of the weights and of Adam's moments.
    assert several.min_bytes_per_step - single.min_bytes_per_step == 3 * 24 * 2_262_602


# Peaks of hosts


class Product:
    """A matrix product that takes what it would take at its host's rate, by the host's clock."""

    device_timer: DeviceTimer | None = None

    def __init__(self, cell: Cell, host: "Host") -> None:
        self._seconds = 2 * cell.input_size**3 / host.flops_per_second

    def run_step(self) -> None:
        Host.now += self._seconds

    def synchronize(self) -> None: ...

    def reset_peak_memory(self) -> None: ...

    def device_kind(self) -> Device:
        return "cpu"


class Host:
    """Two cores that build products, remember the cells that were asked for, and have the clock that these move."""

    now = 0.0
    other_cores = 0.0
    """What others use all the time."""

    def __init__(self, flops_per_second: float) -> None:
        self.flops_per_second = flops_per_second
        self.cells: list[Cell] = []

    @classmethod
    def read_counters(cls) -> CpuCounters:
        """Return what the kernel would report now."""
        return CpuCounters(
            seconds=cls.now,
            own_seconds=0.0,
            busy_seconds=cls.other_cores * cls.now,
            num_machine_cores=2,
            quota=None,
            packages=None,
        )

    def build(self, cell: Cell) -> Product:
        self.cells.append(cell)
        return Product(cell, self)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for module in ("harness", "host_peak"):
        monkeypatch.setattr(f"bench.{module}.perf_counter", lambda: Host.now)
    monkeypatch.setattr("bench.host_peak.read_cpu_counters", Host.read_counters)
    monkeypatch.setattr(Host, "other_cores", 0.0)
    return tmp_path / "benchmatrix" / "host-peaks.json"


def test_the_product_is_run_as_the_cell_is(cache: Path) -> None:
    host = Host(1e11)
    cell = make_cell(framework="jax", mode="compiled", precision="bf16", batch_size=64)
    rate = measure_matrix_product(cell, host.build)
    assert rate == pytest.approx(1e11)
    product = Cell.model_validate(host.cells[0].model_dump())
    assert (
        product.model,
        product.framework,
        product.mode,
        product.precision,
        product.batch_size,
    ) == ("matmul", "jax", "compiled", "bf16", 1)


def test_products_grow_until_one_would_take_too_long(cache: Path) -> None:
    slow, middling, fast = Host(5e9), Host(1e11), Host(1e13)
    for host in (slow, middling, fast):
        measure_matrix_product(make_cell(), host.build)
    # 2 x 512^3 operations take 54 ms at 5e9, eight times that is more than 0.25 s; 2 x 2048^3 take 0.17 s at 1e11.
    assert [cell.input_size for cell in slow.cells] == [512]
    assert [cell.input_size for cell in middling.cells] == [512, 1024, 2048]
    assert [cell.input_size for cell in fast.cells] == list(SIZES)


def test_a_host_is_measured_once_per_framework_and_its_best_is_its_peak(cache: Path) -> None:
    slow, fast = Host(5e9), Host(1e10)
    jax = make_cell(framework="jax", mode="compiled")
    first = find_host_peaks(make_cell(), 2, 1e9, slow.build)
    second = find_host_peaks(jax, 2, 1e9, fast.build)
    third = find_host_peaks(make_cell(), 2, 1e9, slow.build)
    assert [cell.input_size for cell in slow.cells] == [512]
    assert [cell.input_size for cell in fast.cells][:1] == [512]
    assert first.flops_per_second == pytest.approx(5e9)
    assert second.flops_per_second == pytest.approx(1e10)
    assert third == second
    assert "2 threads, in jax" in third.source
    assert (third.bytes_per_second, third.cache_bytes) == (None, 0)


def test_threads_and_precisions_have_peaks_of_their_own(cache: Path) -> None:
    host = Host(5e9)
    for num_threads, precision in ((1, "fp32"), (2, "fp32"), (2, "bf16"), (2, "fp32")):
        find_host_peaks(make_cell(precision=precision), num_threads, 1e9, host.build)
    assert (len(host.cells), len(read_cache(cache))) == (3, 3)


@pytest.mark.parametrize(("other_cores", "is_kept"), [(0.19, True), (0.21, False)])
def test_a_peak_measured_beside_a_busy_neighbour_is_not_kept(
    other_cores: float, is_kept: bool, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More than a tenth of the two threads have no core from 0.2 on.
    monkeypatch.setattr(Host, "other_cores", other_cores)
    host = Host(5e9)
    peaks = find_host_peaks(make_cell(), 2, 1e9, host.build)
    if is_kept:
        assert peaks.flops_per_second == pytest.approx(5e9)
    else:
        assert (peaks.flops_per_second, peaks.source) == (None, "not measured: other processes kept the cores busy")
    assert (len(host.cells), bool(read_cache(cache))) == (1 if is_kept else 3, is_kept)


def test_a_neighbour_does_not_touch_the_peak_that_is_known(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_host_peaks(make_cell(), 2, 1e9, Host(1e10).build)
    monkeypatch.setattr(Host, "other_cores", 1.0)
    jax = make_cell(framework="jax", mode="compiled")
    peaks = find_host_peaks(jax, 2, 1e9, Host(9e10).build)
    assert peaks.flops_per_second == pytest.approx(1e10)
    assert "in pytorch" in peaks.source


def test_a_peak_that_a_cell_surpasses_is_measured_again(cache: Path) -> None:
    host = Host(5e9)  # at a low clock
    find_host_peaks(make_cell(), 2, 1e9, host.build)
    host.flops_per_second = 1e10
    repaired = find_host_peaks(make_cell(), 2, 6e9, host.build)
    assert repaired.flops_per_second == pytest.approx(1e10)
    assert sum(cell.input_size == 512 for cell in host.cells) == 2


def test_a_cell_that_stays_above_the_peak_is_measured_a_few_times_and_no_more(cache: Path) -> None:
    host = Host(5e9)
    peaks = find_host_peaks(make_cell(), 2, 1e15, host.build)
    assert len(host.cells) == 3
    assert peaks.flops_per_second == pytest.approx(5e9)


def test_where_nothing_can_be_written_the_peak_is_measured_all_the_same(cache: Path) -> None:
    cache.parent.write_text("a file where the folder should be")
    assert find_host_peaks(make_cell(), 2, 1e9, Host(5e9).build).flops_per_second == pytest.approx(5e9)


def test_the_peaks_lie_with_the_temporary_files_where_there_is_no_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert locate_cache() == tmp_path / ".cache" / "benchmatrix" / "host-peaks.json"
    monkeypatch.setenv("HOME", str(tmp_path / "none"))
    assert Path(tempfile.gettempdir()) / "benchmatrix" / "host-peaks.json" == locate_cache()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": 5}', '{"host": {"jax": "fast"}}'])
def test_a_damaged_file_is_as_good_as_none(cache: Path, text: str) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text(text)
    assert read_cache(cache) == {}
    find_host_peaks(make_cell(), 2, 1e9, Host(1e11).build)
    assert len(json.loads(cache.read_text())) == 1
