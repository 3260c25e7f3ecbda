"""runner.images: a tag is a hash of the content, and which names choose which images."""

import shutil
from pathlib import Path

import pytest

from bench.errors import UserError
from factories import make_cell
from runner import images
from runner.images import choose_images, find_image, list_images, make_arguments, name_image
from runner.profiles.loading import load_profile

ROOT = Path(__file__).parents[4]
FRAMEWORK_IMAGES = {f"{name}:{flavour}" for name in ("pytorch", "tensorflow", "jax") for flavour in ("cpu", "cuda")}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what the images are made of."""
    for image in list_images():
        for source in image.sources:
            target = tmp_path / source
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, target)
    monkeypatch.setattr(images, "locate_sources", lambda: tmp_path)
    return tmp_path


def name_all() -> dict[str, str]:
    return {f"{image.name}:{image.flavour}": name_image("r", image) for image in list_images()}


def test_the_same_sources_have_the_same_tag_wherever_they_lie(checkout: Path) -> None:
    here = name_all()
    assert len(set(here.values())) == 7
    (checkout / "images" / "bench" / "src" / "bench" / "__pycache__").mkdir(exist_ok=True)
    (checkout / "images" / "bench" / "src" / "bench" / "__pycache__" / "x.pyc").write_bytes(b"x")
    (checkout / "docs").mkdir()
    assert name_all() == here


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("images/jax/requirements-cpu.txt", {"jax:cpu", "control:None"}),
        ("images/framework.Dockerfile", FRAMEWORK_IMAGES | {"control:None"}),
        ("images/benchmatrix/Dockerfile", {"control:None"}),
        (".dockerignore", FRAMEWORK_IMAGES | {"control:None"}),
        ("runner/cli.py", {"control:None"}),
        ("images/bench/src/bench/errors.py", FRAMEWORK_IMAGES | {"control:None"}),
    ],
)
def test_a_source_that_changes_changes_the_tags_of_what_it_goes_into(
    checkout: Path, path: str, changed: set[str]
) -> None:
    before = name_all()
    (checkout / path).write_text((checkout / path).read_text() + "\n")
    after = name_all()
    assert {name for name in before if before[name] != after[name]} == changed


def test_names_choose_images_with_or_without_flavour() -> None:
    def name(*words: str) -> list[str]:
        return [f"{image.name}:{image.flavour}" for image in choose_images(words)]

    assert name() == ["pytorch:cpu", "tensorflow:cpu", "jax:cpu", "control:None"]
    assert name("jax") == ["jax:cpu", "jax:cuda"]
    assert name("jax:cuda", "control") == ["jax:cuda", "control:None"]
    with pytest.raises(UserError, match="image 'jaxx': .* pytorch, tensorflow, jax, control"):
        name("jaxx")


def test_a_profile_names_the_image_that_a_build_with_its_options_makes(checkout: Path, tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    base, index = f"python@sha256:{'0a' * 32}", "https://index.example/cpu"
    path.write_text(f"extends: kind\nimage_base: {base}\nimage_cpu_index: {index}\n")
    cell = make_cell()
    built = name_image("benchmatrix", find_image("pytorch", "cpu"), make_arguments(base, index))
    assert load_profile(str(path)).find_image(cell) == built
    assert load_profile("kind").find_image(cell) == name_image("benchmatrix", find_image("pytorch", "cpu"))
    path.write_text(f"extends: kind\nimage_base: {images.DEFAULT_BASE}\n")
    assert load_profile(str(path)).find_image(cell) == load_profile("kind").find_image(cell)
