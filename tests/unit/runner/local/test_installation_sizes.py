"""runner.local.virtual_environments: what is said of several installations before the first begins."""

from pathlib import Path

from runner.images.names import locate_requirements
from runner.local.virtual_environments import describe_installations
from runner.sources import find_source


def test_the_sizes_of_all_are_added(tmp_path: Path) -> None:
    locks = {
        "jax-cpu": find_source(locate_requirements("jax", "cpu")),
        "tensorflow-cpu": find_source(locate_requirements("tensorflow", "cpu")),
    }
    text = describe_installations(locks, tmp_path / "not" / "there")

    # 189,464,094 + 360,295,590 bytes at 12.5 MB/s, and 822,497,280 + 1,659,863,040 on the disk
    words = "jax-cpu, tensorflow-cpu: 550 MB to download (44 s at 100 Mbit/s, and unpacking), 2.5 GB on the disk; "
    assert text.startswith(words)
    assert text.endswith(f"B are free in {tmp_path}/not/there")


def test_a_size_that_is_not_known_is_not_left_out_of_a_sum(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("torch==1\n")
    locks = {
        "jax-cpu": find_source(locate_requirements("jax", "cpu")),
        "pytorch-cpu": tmp_path / "mine.txt",
    }
    text = describe_installations(locks, tmp_path)

    assert text.startswith("jax-cpu, pytorch-cpu: how much there is to download is not known for each; ")


def test_what_a_card_needs_takes_more_than_the_download(tmp_path: Path) -> None:
    text = describe_installations({"jax-cuda": find_source(locate_requirements("jax", "cuda"))}, tmp_path)

    # 3,394,838,676 bytes at 12.5 MB/s
    assert text.startswith(
        "jax-cuda: 3.4 GB to download (5 min at 100 Mbit/s, and unpacking), more than that on the disk"
    )
