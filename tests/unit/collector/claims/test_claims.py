import pandas as pd
import pytest

from collector.claims.measurements import count_flops
from collector.claims.page import evaluate_claims, find_claim_results, write_claims_page
from collector.claims.plausibility import (
    compute_latency_gains,
    describe_bound,
    describe_algorithm_caveat,
    imply_rates,
    list_beyond_bound,
)
from collector.claims.study import load_study
from collector.forecast.fit import fit_forecast
from collector.forecast.gpu_table import load_gpu_table
from collector.results.summary import summarize_cells
from factories import make_cell, make_cpu_use, make_environment, make_gpu, make_roofline, make_validity
from measured_runs import collect_results, make_repeats

IMPOSSIBLE = "impossible on the stated hardware"
IMPLAUSIBLE = "implausible on the stated hardware"
H100 = make_environment(gpus=(make_gpu(name="NVIDIA H100"),), versions={"torch": "2.11.0", "tensorflow": "2.21.0"})
T4 = make_environment(gpus=(make_gpu(name="Tesla T4"),), versions={"torch": "2.11.0", "tensorflow": "2.21.0"})
XEON = make_environment(versions=T4.versions)
HOST = make_environment(num_threads=16, versions={"torch": "2.11.0", "tensorflow": "2.21.0"})
VGG16_FLOPS = 64 * 92_820_000_000  # of a training step at batch 64
VGG16 = {"model": "vgg16", "input_size": 224, "num_classes": 1000, "batch_size": 64}


def find_rates(model, framework, device, phase, counted=None):
    study = load_study()
    return imply_rates(study, study.find_entry(model, framework, device, phase), counted or {})


def ask(tmp_path, *results, **options):
    """The answers by the id of their claims."""
    summary = summarize_cells(collect_results(tmp_path, *results))
    answers = evaluate_claims(summary, forecast=None, **options)
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
    assert rate.flops_per_second == pytest.approx(flops_per_second, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "device", "phase", "percent"),
    [
        ("vgg16", "gpu", "train", 121.5),  # 9.84 of 8.1 TFLOP/s
        ("resnet18", "gpu", "train", 43.3),  # 3.51 TFLOP/s
        ("cyclegan", "cpu", "train", 188.2),  # 373 of 64 * 3.1 = 198.4 GFLOP/s
        ("vgg16", "cpu", "infer", 357.8),  # 710 GFLOP/s
    ],
)
def test_a_rate_is_a_share_of_what_bounds_the_stated_device(model, device, phase, percent):
    (rate,) = find_rates(model, "tensorflow", device, phase)
    assert 100 * rate.share_of_bound == pytest.approx(percent, abs=0.1)


def test_conv6_is_read_at_both_sizes_and_possible_at_one():
    large, small = find_rates("conv6", "tensorflow", "gpu", "train")
    assert (large.input_size, small.input_size) == (224, 32)
    assert large.flops_per_second / 1e12 == pytest.approx(20.3, abs=0.05)  # 3 * 2 * 7.54e9 * 64 / 0.14267
    assert small.flops_per_second / 1e12 == pytest.approx(0.414, abs=0.0005)  # 3 * 2 * 0.1539e9 * 64 / 0.14267
    assert (large.plausibility, small.plausibility) == ("impossible", "possible")  # 2.49 and 0.05 times 8.1


def test_of_the_28_times_six_are_impossible_and_four_implausible():
    found = {
        (rate.entry.model, rate.entry.framework, rate.entry.device, rate.entry.phase): rate.plausibility
        for rate in list_beyond_bound(load_study(), {})
    }
    assert found == {
        ("vgg16", "tensorflow", "gpu", "train"): "implausible",  # 9.84 of 8.1 TFLOP/s: 1.22
        ("vgg16", "pytorch", "gpu", "train"): "implausible",  # 9.01: 1.11
        ("vgg16", "tensorflow", "gpu", "infer"): "impossible",  # 29.9: 3.69
        ("vgg16", "pytorch", "gpu", "infer"): "impossible",  # 28.0: 3.45
        ("vgg16", "tensorflow", "cpu", "infer"): "impossible",  # 710 of 198.4 GFLOP/s: 3.58
        ("cyclegan", "tensorflow", "cpu", "train"): "implausible",  # 373: 1.88
        ("cyclegan", "pytorch", "cpu", "train"): "implausible",  # 335: 1.69
        ("cyclegan", "tensorflow", "gpu", "infer"): "impossible",  # 21.4 of 8.1 TFLOP/s: 2.64
        ("cyclegan", "pytorch", "gpu", "infer"): "impossible",  # 20.1: 2.48
        ("cyclegan", "tensorflow", "cpu", "infer"): "impossible",  # 487 of 198.4 GFLOP/s: 2.45
    }
    assert len(load_study().table) == 28


def test_the_cpus_likely_peak_is_not_its_bound():
    sentence = describe_bound(load_study().cpu)
    assert load_study().cpu.bound_flops_per_second == pytest.approx(2 * 16 * 2 * 3.1e9)
    assert "is taken as 198 GFLOP/s" in sentence
    assert sentence.endswith("its likely peak is 70.0 to 128 GFLOP/s")


def test_the_15_percent_is_not_in_the_studys_table():
    gains = compute_latency_gains(load_study())
    expected = {"conv6": 0.186, "vgg16": 0.064, "resnet18": 0.098, "cyclegan": 0.061}
    assert {model: round(gain, 3) for model, gain in gains.items()} == expected
    assert sum(gains.values()) / 4 == pytest.approx(0.1025, abs=5e-5)


def test_the_tables_times_give_the_claimed_speedups():
    study = load_study()
    for claim in study.claims:
        if claim.kind == "speedup":
            cpu, gpu = (study.find_entry(claim.model, "tensorflow", device, "train") for device in ("cpu", "gpu"))
            assert round(cpu.milliseconds / gpu.milliseconds) == claim.figure


def test_operations_that_a_run_counted_replace_the_studys():
    (rate,) = find_rates("vgg16", "tensorflow", "gpu", "train", {("vgg16", 224, "train"): 1e9})
    assert rate.flops_per_second == pytest.approx(64e9 / 0.60354)
    assert rate.is_counted


def test_of_several_counts_of_one_work_the_fewest_operations_count():
    rows = pd.DataFrame(
        {
            "model": "vgg16",
            "input_size": 224,
            "phase": "train",
            "batch_size": [64, 64, 1],
            "flops_per_step": pd.array([640, 320, None], dtype="Int64"),
        }
    )
    assert count_flops(rows) == {("vgg16", 224, "train"): 5.0}


def test_the_escape_names_the_algorithm_and_what_is_left_to_it():
    (training,) = find_rates("vgg16", "tensorflow", "gpu", "train")
    (inference,) = find_rates("vgg16", "tensorflow", "gpu", "infer")
    (small,) = find_rates("resnet18", "tensorflow", "gpu", "train")
    assert describe_algorithm_caveat(training).startswith("out of reach of direct convolutions, possible only by algorithms with")
    assert describe_algorithm_caveat(inference).startswith("out of reach even if all of the work were 3x3 convolutions done with")
    assert "all of the work at 92.3 % of the peak" in describe_algorithm_caveat(inference)  # 29.89 / 8.1 / 4
    assert describe_algorithm_caveat(small) == ""


def test_without_runs_arithmetic_alone_decides(tmp_path):
    answers = ask(tmp_path, *make_repeats(make_cell(model="resnet18", batch_size=1), 0.1))
    assert {name: answer.verdict for name, answer in answers.items()} == {
        "speedup-conv6": "not tested here",
        "speedup-vgg16": IMPLAUSIBLE,
        "speedup-resnet18": "not tested here",
        "speedup-cyclegan": IMPLAUSIBLE,
        "latency": "not tested here",
        "fusion": "not tested here",
        "table": IMPOSSIBLE,
        "memory": "not tested here",
        "energy": "not tested here",
        "access": "not tested here",
    }
    assert "122 % of the 8.10 TFLOP/s peak of a Tesla T4: out of reach of direct" in answers["speedup-vgg16"].reason
    assert "188 % of the 198 GFLOP/s bound of a Xeon with 2 vCPUs" in answers["speedup-cyclegan"].reason
    assert "10 of its 28 times" in answers["table"].reason
    assert "6 of them even if" in answers["table"].reason


def make_devices(cpu_seconds, gpu_seconds, gpu_environment=H100, host=HOST, flops_per_step=10**9, **fields):
    """Three repeats on a CPU and on a GPU; `cpu_seconds`: one time, or that of each repeat."""
    times = cpu_seconds if isinstance(cpu_seconds, tuple) else (cpu_seconds,) * 3
    base = {"framework": "tensorflow", "mode": "graph"} | fields
    gpu, cpu = (make_cell(**(base | {"device": device})) for device in ("gpu", "cpu"))
    return [
        *make_repeats(
            cpu,
            *times,
            environment=host,
            cpu_use=make_cpu_use(energy_joules=1920.0),
            roofline=make_roofline(flops_per_step=flops_per_step),
        ),
        *make_repeats(
            gpu,
            *[gpu_seconds] * len(times),
            environment=gpu_environment,
            roofline=make_roofline(flops_per_step=flops_per_step, peak_flops_per_second=6e12),
        ),
    ]


def test_a_speedup_on_other_hardware_is_the_nearest_answer_and_decides_nothing(tmp_path):
    eager = make_devices(8.0, 0.1, framework="pytorch", mode="eager")
    answer = ask(tmp_path, *eager, *make_devices(9.0, 0.1))["speedup-conv6"]
    assert answer.verdict == "not tested here"
    assert "the figure is of a Tesla T4 over a Xeon with 2 vCPUs; measured here is other hardware" in answer.reason
    assert "on NVIDIA H100 over Intel(R) Xeon(R) CPU @ 2.20GHz, 16 threads" in answer.reason
    assert "TensorFlow graph at 32 px 90.0 times (95 % interval 90.0 to 90.0) as fast" in answer.reason
    assert "PyTorch eager at 32 px 80.0 times (95 % interval 80.0 to 80.0) as fast" in answer.reason
    first, second = answer.measured
    assert "NVIDIA H100 over Intel(R) Xeon(R) CPU @ 2.20GHz, 16 threads: 90.0 times" in first
    assert first.endswith("the peaks are 120 times apart")  # 6e12 over 5e10
    assert "PyTorch eager" in second


def test_the_nearest_answer_stands_beside_what_arithmetic_says(tmp_path):
    answer = ask(tmp_path, *make_devices(9.0, 0.1, flops_per_step=VGG16_FLOPS, **VGG16))["speedup-vgg16"]
    assert answer.verdict == IMPLAUSIBLE
    assert "TensorFlow graph at 224 px 90.0 times" in answer.reason


@pytest.mark.parametrize(
    ("seconds", "verdict", "words"),
    [
        (24.0, "reproduced", "240 to 240 times (inside the band)"),  # of 221.4 to 270.6
        (9.0, "not reproduced", "90.0 to 90.0 times (outside the band)"),
        # 246x in the middle, and ends that no band of 10 % holds.
        ((20.0, 24.6, 30.0), "not decided", "times (too wide to decide, across an edge of the band)"),
    ],
)
def test_a_speedup_on_the_stated_hardware_is_decided_by_its_whole_interval(tmp_path, seconds, verdict, words):
    answer = ask(tmp_path, *make_devices(seconds, 0.1, T4, XEON))["speedup-conv6"]
    assert answer.verdict == verdict
    assert words in answer.reason
    assert "the band 221 to 271 times" in answer.reason


def test_what_was_measured_on_the_stated_hardware_goes_before_a_doubt(tmp_path):
    results = make_devices(11.6, 0.1, T4, XEON, flops_per_step=VGG16_FLOPS, **VGG16)
    assert ask(tmp_path, *results)["speedup-vgg16"].verdict == "reproduced"


def test_what_is_impossible_stays_so_whatever_was_measured(tmp_path):
    results = make_devices(11.6, 0.1, T4, XEON, flops_per_step=2 * VGG16_FLOPS, **VGG16)
    assert ask(tmp_path, *results)["speedup-vgg16"].verdict == IMPOSSIBLE  # 2.44 times the T4's peak


@pytest.mark.parametrize(
    "host",
    [
        make_environment(num_threads=4, versions=T4.versions),
        make_environment(cpu_model="AMD EPYC 7B12", versions=T4.versions),
    ],
)
def test_the_stated_cpu_is_a_xeon_with_two_threads(tmp_path, host):
    answer = ask(tmp_path, *make_devices(24.0, 0.1, T4, host))["speedup-conv6"]
    assert answer.verdict == "not tested here"
    assert "measured here is other hardware" in answer.reason


@pytest.mark.parametrize(
    "fields",
    [
        {"batch_size": 8},
        {"input_size": 64},
        {"data_dir": "/data/cifar"},
        {"mode": "compiled"},
        {"framework": "pytorch", "mode": "eager"},
    ],
)
def test_only_the_studys_own_configuration_decides(tmp_path, fields):
    answer = ask(tmp_path, *make_devices(24.6, 0.1, T4, XEON, **fields))["speedup-conv6"]
    assert answer.verdict == "not tested here"
    assert "measured here is other work than the study's" in answer.reason
    assert len(answer.measured) == 1


def test_why_stated_hardware_decided_nothing_is_told_apart(tmp_path):
    single = ask(tmp_path / "single", *make_devices((24.6,), 0.1, T4, XEON))["speedup-conv6"]
    invalid = [
        result.model_copy(update={"validity": make_validity("noisy")}) for result in make_devices(24.6, 0.1, T4, XEON)
    ]
    left_out = ask(tmp_path / "left-out", *invalid)["speedup-conv6"]
    nothing = ask(tmp_path / "nothing", *make_repeats(make_cell(), 0.1))["speedup-conv6"]
    assert [result.verdict for result in (single, left_out, nothing)] == ["not tested here"] * 3
    assert "but no interval for 1 of 1 pairs, as a side has one repeat" in single.reason
    assert "but 1 of 1 pairs are left out: 1 as no repeat of Tesla T4 and of CPU is valid" in left_out.reason
    assert nothing.reason == "no cell of this model's training was measured on both a GPU and a CPU"


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
    assert answer.verdict == verdict
    assert answer.reason.endswith("In the study's own table the average is 10.3 %")
    assert len(answer.measured) == len(ratios)


def test_a_latency_whose_interval_is_too_wide_decides_nothing(tmp_path):
    eager = make_cell(device="gpu", phase="infer")
    graph = make_cell(device="gpu", phase="infer", framework="tensorflow", mode="graph")
    results = [
        *make_repeats(eager, 1.0, 1.0, environment=H100),
        *make_repeats(graph, 0.7, 0.85, 1.0, environment=H100),
    ]
    answer = ask(tmp_path, *results)["latency"]
    assert answer.verdict == "not decided"
    assert "of 1 are too wide to decide (conv6 batch 64: 0." in answer.reason


@pytest.mark.parametrize("fields", [{"input_size": 64}, {"data_dir": "/data/cifar"}])
def test_latency_and_fusion_are_judged_at_the_stated_sizes_on_synthetic_data(tmp_path, fields):
    answers = ask(tmp_path, *make_modes(1.0, 0.5, 1.0, **fields))
    assert (answers["latency"].verdict, answers["latency"].measured) == ("not tested here", ())
    assert (answers["fusion"].verdict, answers["fusion"].measured) == ("not tested here", ())


def make_modes(eager, graph, pytorch, compiled=None, **fields):
    """Inference on a GPU: TensorFlow's modes and PyTorch eager; None: not measured."""
    base = {"device": "gpu", "phase": "infer"} | fields
    times = {
        ("tensorflow", "eager"): eager,
        ("tensorflow", "graph"): graph,
        ("tensorflow", "compiled"): compiled,
        ("pytorch", "eager"): pytorch,
    }
    return [
        result
        for (framework, mode), seconds in times.items()
        if seconds is not None
        for result in make_repeats(
            make_cell(**base, framework=framework, mode=mode), seconds, seconds, environment=H100
        )
    ]


@pytest.mark.parametrize(
    ("eager", "graph", "pytorch", "verdict"),
    [
        (1.0, 0.5, 0.8, "reproduced"),
        (1.0, 0.5, 0.4, "not reproduced"),  # graph mode is faster, and PyTorch is faster still
        (0.4, 0.5, 0.8, "not reproduced"),  # faster than PyTorch, not because of graph mode
        (0.5, 0.5, 0.8, "not decided"),
    ],
)
def test_fusion_must_lower_latency_and_below_that_of_pytorch(tmp_path, eager, graph, pytorch, verdict):
    answer = ask(tmp_path, *make_modes(eager, graph, pytorch, compiled=2.0))["fusion"]
    assert answer.verdict == verdict
    assert "does not by itself make fusion the reason that TensorFlow is faster than PyTorch" in answer.reason
    assert "XLA over graph mode, beside it: faster in 0 of 1 cells, slower in 1" in answer.reason


def test_cells_that_fusion_lacks_are_named(tmp_path):
    answer = ask(tmp_path, *make_modes(None, 0.5, 0.8), *make_modes(None, None, 0.8, batch_size=8))["fusion"]
    assert answer.verdict == "not tested here"
    assert "TensorFlow graph at conv6 32 px batch 8, cyclegan 256 px batch 1, resnet18 224 px batch 64" in answer.reason
    assert "TensorFlow eager at conv6 32 px batch 8 and 64, cyclegan 256 px batch 1" in answer.reason
    assert "PyTorch eager at cyclegan 256 px batch 1, resnet18 224 px batch 64, vgg16 224 px batch 64" in answer.reason


def test_the_projection_of_memory_is_replayed_from_what_was_known(tmp_path):
    forecast = fit_forecast(load_gpu_table(None), year=2030)
    summary = summarize_cells(collect_results(tmp_path, *make_devices(9.0, 0.1)))
    answers = evaluate_claims(summary, forecast=forecast)
    (memory,) = (answer for answer in answers if "Polynomial" in answer.statement)
    assert any(line.startswith("polynomial 2, fitted on GPUs up to 2022:") for line in memory.arithmetic)


def test_energy_gains_are_shown_beside_speedups(tmp_path):
    answer = ask(tmp_path, *make_devices(9.0, 0.1, **VGG16))["energy"]
    # two vCPUs at 8 W, a T4 at 70 W: 116 * 8 / 70
    assert (
        "the GPU then saves energy by a factor of about 13 (116 x 8 / 70), where the implied claim is 116"
        in (answer.arithmetic[0])
    )
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
        for answers in (evaluate_claims(summary, forecast=None, include_invalid=include) for include in (False, True))
    ]
    assert verdicts == ["not tested here", "reproduced"]


def test_a_run_that_answers_nothing_has_no_answers(tmp_path):
    assert (
        find_claim_results(summarize_cells(collect_results(tmp_path, *make_repeats(make_cell(), 0.1))), forecast=None)
        == ()
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
    assert text.count("TensorFlow stands here for Keras 3 on TensorFlow") == 1
    assert "fewer than 3 valid repeats" not in text


def test_the_page_warns_of_cells_with_few_repeats(tmp_path):
    page = tmp_path / "claims.md"
    write_claims_page([collect_results(tmp_path, *make_devices(9.0, 0.1), *make_latencies(0.85))], page)
    assert "2 of the 4 cells of the study's models at fp32 have fewer than 3 valid repeats" in page.read_text()


def test_text_of_results_is_no_markup_on_the_page(tmp_path):
    hostile = make_environment(gpus=(make_gpu(name="<b>*H100* | [x](y)"),), versions=HOST.versions)
    page = tmp_path / "claims.md"
    write_claims_page([collect_results(tmp_path, *make_devices(9.0, 0.1, hostile))], page)
    assert "\\<b\\>\\*H100\\* \\| \\[x\\](y)" in page.read_text()
    assert "<b>" not in page.read_text()
