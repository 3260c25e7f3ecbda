"""The page of claims in Markdown."""

from pathlib import Path

from collector.claims.page import write_claims_page
from collector.claims.study import load_study
from factories import make_environment, make_gpu
from measured_runs import collect_results
from study_runs import HOST, make_devices, make_inference


def test_the_page_holds_every_claim_its_verdict_and_the_runs(tmp_path: Path) -> None:
    page = tmp_path / "new" / "claims.md"
    gpu_run = collect_results(tmp_path, *(r for r in make_devices(9.0, 0.1) if r.cell.device == "gpu"))
    cpu = [r.model_copy(update={"run_id": "cpu-run"}) for r in make_devices(9.0, 0.1) if r.cell.device == "cpu"]
    write_claims_page([gpu_run, collect_results(tmp_path, *cpu, run_id="cpu-run")], page)
    text = page.read_text()
    for claim in load_study().claims:
        section = text.partition(f"## {claim.statement}\n")[2].partition("\n## ")[0]
        provenance = load_study().describe_provenance(claim)
        assert f"**, of {provenance}: " in section
        assert ("\n> " in section) == bool(claim.quote)
        assert f"| {claim.statement} | {provenance} | " in text
    assert "run: cpu-run" in text
    assert "90.0 times (95 % interval 90.0 to 90.0) as fast" in text
    assert text.count("TensorFlow stands here for Keras 3 on TensorFlow") == 1
    assert "repeats that count" not in text
    assert "The paper itself was not read" in text.partition("| claim |")[0]
    assert "| not tested here; too slow to be a baseline at 32 px |" in text
    assert "\nFinding, **too slow to be a baseline at 32 px**: " in text


def test_the_page_warns_of_cells_with_few_repeats(tmp_path: Path) -> None:
    page = tmp_path / "claims.md"
    few = [
        result for result in make_inference("pytorch", "eager", {"vgg16": 1.0, "resnet18": 1.0}) if result.repeat < 3
    ]
    write_claims_page([collect_results(tmp_path, *make_devices(9.0, 0.1), *few)], page)
    assert "2 of the 4 cells of the study's models at fp32 have fewer than 3 repeats that count" in page.read_text()


def test_text_of_results_is_no_markup_on_the_page(tmp_path: Path) -> None:
    hostile = make_environment(gpus=(make_gpu(name="<b>*H100* | [x](y)"),), versions=HOST.versions)
    page = tmp_path / "claims.md"
    write_claims_page([collect_results(tmp_path, *make_devices(9.0, 0.1, hostile))], page)
    assert "\\<b\\>\\*H100\\* \\| \\[x\\](y)" in page.read_text()
    assert "<b>" not in page.read_text()
