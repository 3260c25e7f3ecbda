import pytest

from collector.claims import answer_claims, find_answers, write_claims_page
from collector.forecast import fit_forecast
from collector.gpu_table import load_gpu_table
from collector.plausibility import compute_latency_gains, describe_escape, imply_rates, list_impossible
from collector.study import load_study
from collector.tables import summarize_cells
from factories import make_cell, make_cpu_use, make_environment, make_gpu, make_roofline, make_validity
from measured_runs import collect_results, make_repeats

IMPOSSIBLE = "impossible on the stated hardware"
H100 = make_environment(gpus=(make_gpu(name="NVIDIA H100"),), versions={"torch": "2.11.0", "tensorflow": "2.21.0"})
HOST = make_environment(num_threads=16, versions={"torch": "2.11.0", "tensorflow": "2.21.0"})
VGG16 = {"model": "vgg16", "input_size": 224, "num_classes": 1000, "batch_size": 64}


def find_rates(model, framework, device, phase, counted=None):
    study = load_study()
    return imply_rates(study, study.find_entry(model, framework, device, phase), counted or {})


def ask(tmp_path, *results, **options):
    """The answers by the id of their claims."""
    summary = summarize_cells(collect_results(tmp_path, *results))
    answers = answer_claims(summary, forecast=None, **options)
    return {claim.id: answer for claim, answer in zip(load_study().claims, answers, strict=True)}


@pytest.mark.parametrize(
    ("model", "device", "phase", "flops_per_second"),
    [
        # 2 FLOP a multiply-add, batch 64, three forward passes in training; GMAC and times of the study's table.
        ("vgg16", "gpu", "train", 3 * 2 * 15.47e9 * 64 / 0.60354),
        ("vgg16", "gpu", "infer", 2 * 15.47e9 * 64 / 0.06624),
        ("vgg16", "cpu", "infer", 2 * 15.47e9 * 64 / 2.78917),
        ("resnet18", "gpu", "train", 3 * 2 * 1.814e9 * 64 / 0.19842),
        ("resnet18", "cpu", "train", 3 * 2 * 1.814e9 * 64 / 10.12783),
        ("cyclegan", "cpu", "train", 1.885e12 / 5.04728),
        ("cyclegan", "gpu", "infer", 2 * 49.55e9 / 0.00463),
    ],
)
def test_a_time_implies_a_rate(model, device, phase, flops_per_second):
    (rate,) = find_rates(model, "tensorflow", device, phase)
    assert flops_per_second == pytest.approx(rate.flops_per_second, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "device", "phase", "percent"),
    [
        ("vgg16", "gpu", "train", 121.5),  # 9.84 of 8.1 TFLOP/s
        ("resnet18", "gpu", "train", 43.3),  # 3.51 TFLOP/s
        ("cyclegan", "cpu", "train", 291.8),  # 373 of at most 128 GFLOP/s
        ("vgg16", "cpu", "infer", 554.6),  # 710 GFLOP/s
    ],
)
def test_a_rate_is_a_share_of_the_stated_devices_peak(model, device, phase, percent):
    (rate,) = find_rates(model, "tensorflow", device, phase)
    assert percent == pytest.approx(100 * rate.share_of_peak, abs=0.1)


def test_conv6_is_read_at_both_sizes_and_possible_at_one():
    large, small = find_rates("conv6", "tensorflow", "gpu", "train")
    assert (224, 32) == (large.input_size, small.input_size)
    assert 20.3 == pytest.approx(large.flops_per_second / 1e12, abs=0.05)  # 3 * 2 * 7.54e9 * 64 / 0.14267
    assert 0.414 == pytest.approx(small.flops_per_second / 1e12, abs=0.0005)  # 3 * 2 * 0.1539e9 * 64 / 0.14267
    assert (False, True) == (large.is_possible, small.is_possible)


def test_ten_of_the_28_times_are_impossible():
    found = {
        (rate.entry.model, rate.entry.framework, rate.entry.device, rate.entry.phase)
        for (rate,) in list_impossible(load_study(), {})
    }
    assert {
        ("vgg16", "tensorflow", "gpu", "train"),
        ("vgg16", "pytorch", "gpu", "train"),
        ("vgg16", "tensorflow", "gpu", "infer"),
        ("vgg16", "pytorch", "gpu", "infer"),
        ("vgg16", "tensorflow", "cpu", "infer"),
        ("cyclegan", "tensorflow", "cpu", "train"),
        ("cyclegan", "pytorch", "cpu", "train"),
        ("cyclegan", "tensorflow", "gpu", "infer"),
        ("cyclegan", "pytorch", "gpu", "infer"),
        ("cyclegan", "tensorflow", "cpu", "infer"),
    } == found
    assert 28 == len(load_study().table)


def test_the_15_percent_is_not_in_the_studys_table():
    gains = compute_latency_gains(load_study())
    expected = {"conv6": 0.186, "vgg16": 0.064, "resnet18": 0.098, "cyclegan": 0.061}
    assert expected == {model: round(gain, 3) for model, gain in gains.items()}
    assert 0.1025 == pytest.approx(sum(gains.values()) / 4, abs=5e-5)


def test_the_tables_times_give_the_claimed_speedups():
    study = load_study()
    for claim in study.claims:
        if claim.kind == "speedup":
            cpu, gpu = (study.find_entry(claim.model, "tensorflow", device, "train") for device in ("cpu", "gpu"))
            assert claim.figure == round(cpu.milliseconds / gpu.milliseconds)


def test_operations_that_a_run_counted_replace_the_studys():
    (rate,) = find_rates("vgg16", "tensorflow", "gpu", "train", {("vgg16", 224, "train"): 1e9})
    assert 64e9 / 0.60354 == pytest.approx(rate.flops_per_second)
    assert rate.is_counted


@pytest.mark.parametrize(("share", "saving"), [(1.2, "2.25"), (3.0, "4"), (4.1, "")])
def test_winograds_algorithms_are_named_where_they_could_make_a_time_possible(share, saving):
    clause = describe_escape(share)
    assert bool(saving) == bool(clause)
    assert f"up to {saving} times fewer" in clause or not saving


def test_without_runs_arithmetic_alone_decides(tmp_path):
    answers = ask(tmp_path, *make_repeats(make_cell(model="resnet18", batch_size=1), 0.1))
    assert {
        "speedup-conv6": "not tested here",
        "speedup-vgg16": IMPOSSIBLE,
        "speedup-resnet18": "not tested here",
        "speedup-cyclegan": IMPOSSIBLE,
        "latency": "not tested here",
        "fusion": "not tested here",
        "table": IMPOSSIBLE,
        "memory": "not tested here",
        "energy": "not tested here",
        "access": "not tested here",
    } == {name: answer.verdict for name, answer in answers.items()}
    assert "121 %" not in answers["speedup-resnet18"].reason
    assert "122 % of the 8.10 TFLOP/s that a Tesla T4 has; possible only if" in answers["speedup-vgg16"].reason


def make_devices(cpu_seconds, gpu_seconds, gpu_environment=H100, host=HOST, **fields):
    gpu, cpu = (make_cell(**({"framework": "tensorflow", "device": device} | fields)) for device in ("gpu", "cpu"))
    return [
        *make_repeats(cpu, *[cpu_seconds] * 3, environment=host, cpu_use=make_cpu_use(energy_joules=1920.0)),
        *make_repeats(
            gpu, *[gpu_seconds] * 3, environment=gpu_environment, roofline=make_roofline(peak_flops_per_second=6e12)
        ),
    ]


def test_a_speedup_on_other_hardware_is_shown_and_decides_nothing(tmp_path):
    answer = ask(tmp_path, *make_devices(9.0, 0.1))["speedup-conv6"]
    assert "not tested here" == answer.verdict
    assert (
        "the figure is of a Tesla T4 over a Xeon with 2 vCPUs; measured here is other hardware or work" == answer.reason
    )
    (line,) = answer.measured
    assert "NVIDIA H100 over Intel(R) Xeon(R) CPU @ 2.20GHz, 16 threads: 90.0 times" in line
    assert line.endswith("the peaks are 120 times apart")  # 6e12 over 5e10


@pytest.mark.parametrize(("seconds", "verdict"), [(24.0, "reproduced"), (9.0, "not reproduced")])
def test_a_speedup_on_the_stated_hardware_decides(tmp_path, seconds, verdict):
    environment = make_environment(gpus=(make_gpu(name="Tesla T4"),), versions=HOST.versions)
    host = make_environment(versions=HOST.versions)
    answer = ask(tmp_path, *make_devices(seconds, 0.1, environment, host))["speedup-conv6"]
    assert verdict == answer.verdict  # 240x and 90x where 246x is claimed


def test_the_batch_is_part_of_the_stated_work(tmp_path):
    environment = make_environment(gpus=(make_gpu(name="Tesla T4"),), versions=HOST.versions)
    host = make_environment(versions=HOST.versions)
    assert (
        "not tested here"
        == ask(tmp_path, *make_devices(24.6, 0.1, environment, host, batch_size=8))["speedup-conv6"].verdict
    )


def make_latencies(*ratios):
    """PyTorch eager at 1 s and TensorFlow's graph mode at `ratios`, one batch each, on a GPU."""
    cells = [(make_cell(device="gpu", phase="infer", batch_size=2**n), ratio) for n, ratio in enumerate(ratios)]
    results = []
    for cell, ratio in cells:
        graph = make_cell(device="gpu", phase="infer", batch_size=cell.batch_size, framework="tensorflow", mode="graph")
        results += make_repeats(cell, 1.0, 1.0, environment=H100)
        results += make_repeats(graph, ratio, ratio, environment=H100)
    return results


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [((0.85, 0.88), "reproduced"), ((2.0, 0.82), "not reproduced"), ((1.0,), "not reproduced")],
)
def test_about_15_percent_must_hold_at_every_batch(tmp_path, ratios, verdict):
    answer = ask(tmp_path, *make_latencies(*ratios))["latency"]
    assert verdict == answer.verdict
    assert "15 % is not in the study's own table either, its average is 10.3 %" in answer.reason
    assert len(ratios) == len(answer.measured)


@pytest.mark.parametrize(("seconds", "verdict"), [(0.5, "reproduced"), (1.3, "not reproduced")])
def test_fusion_is_tested_by_xla_over_the_graph_mode(tmp_path, seconds, verdict):
    fields = {"device": "gpu", "phase": "infer", "framework": "tensorflow"}
    results = [
        *make_repeats(make_cell(**fields, mode="graph"), 1.0, 1.0, environment=H100),
        *make_repeats(make_cell(**fields, mode="compiled"), seconds, seconds, environment=H100),
    ]
    assert verdict == ask(tmp_path, *results)["fusion"].verdict


def test_the_projection_of_memory_is_replayed_from_what_was_known(tmp_path):
    forecast = fit_forecast(load_gpu_table(None), year=2030)
    summary = summarize_cells(collect_results(tmp_path, *make_devices(9.0, 0.1)))
    answers = answer_claims(summary, forecast=forecast)
    (memory,) = (answer for answer in answers if "Polynomial" in answer.statement)
    assert any(line.startswith("polynomial 2, fitted on GPUs up to 2022:") for line in memory.arithmetic)


def test_energy_gains_are_shown_beside_speedups(tmp_path):
    answer = ask(tmp_path, *make_devices(9.0, 0.1, **VGG16))["energy"]
    # two vCPUs at 8 W, a T4 at 70 W: 116 * 8 / 70
    assert "116 times the speed is then 13.3 times the energy" in answer.arithmetic[0]
    (line,) = answer.measured
    # CPU: 1920 J for 3 steps of 64; GPU: 180 J for 30 steps of 64
    assert "10.0 J a sample by the CPU's whole sockets, 0.0938 J by the GPU, a ratio of 107" in line


def test_rows_without_a_valid_repeat_decide_nothing_unless_asked(tmp_path):
    results = make_latencies(0.85)
    noisy = [result.model_copy(update={"validity": make_validity("noisy")}) for result in results]
    summary = summarize_cells(collect_results(tmp_path, *noisy))
    study = load_study()
    verdicts = [
        dict(zip([claim.id for claim in study.claims], answers, strict=True))["latency"].verdict
        for answers in (answer_claims(summary, forecast=None, include_invalid=include) for include in (False, True))
    ]
    assert ["not tested here", "reproduced"] == verdicts


def test_a_run_that_answers_nothing_has_no_answers(tmp_path):
    assert () == find_answers(
        summarize_cells(collect_results(tmp_path, *make_repeats(make_cell(), 0.1))), forecast=None
    )


def test_the_page_holds_every_claim_its_verdict_and_the_runs(tmp_path):
    page = tmp_path / "new" / "claims.md"
    gpu_run = collect_results(tmp_path, *(r for r in make_devices(9.0, 0.1) if r.cell.device == "gpu"))
    cpu = [r.model_copy(update={"run_id": "cpu-run"}) for r in make_devices(9.0, 0.1) if r.cell.device == "cpu"]
    write_claims_page([gpu_run, collect_results(tmp_path, *cpu, run_id="cpu-run")], page)
    text = page.read_text()
    for claim in load_study().claims:
        assert f"## {claim.statement}\n\n**" in text
    assert "run: cpu-run" in text
    assert "90.0 times (95 % interval 90.0 to 90.0) as fast" in text


def test_text_of_results_is_no_markup_on_the_page(tmp_path):
    hostile = make_environment(gpus=(make_gpu(name="<b>*H100* | [x](y)"),), versions=HOST.versions)
    page = tmp_path / "claims.md"
    write_claims_page([collect_results(tmp_path, *make_devices(9.0, 0.1, hostile))], page)
    assert "\\<b\\>\\*H100\\* \\| \\[x\\](y)" in page.read_text()
    assert "<b>" not in page.read_text()
