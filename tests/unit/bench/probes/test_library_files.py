"""The libraries' files: each is found where frameworks look for it, and read once."""

from pathlib import Path

from bench.probes.library_files import find_library_folders, read_library_files


def write(path: Path, num_bytes: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(num_bytes))
    return path


def test_every_library_is_read_once_whatever_links_lead_to_it(tmp_path: Path) -> None:
    library = write(tmp_path / "a" / "libcudnn_engines.so.9", 1000)
    (tmp_path / "a" / "libcudnn_engines.so").symlink_to(library)
    write(tmp_path / "b" / "libcublasLt.so.13", 200)
    write(tmp_path / "b" / "libother.so", 5000)
    assert read_library_files([tmp_path / "a", tmp_path / "b", tmp_path / "a", tmp_path / "missing"]) == 1200


def test_the_folders_of_the_library_path_are_searched(tmp_path: Path) -> None:
    folders = find_library_folders({"LD_LIBRARY_PATH": f"{tmp_path}::/opt/cuda"})
    assert {tmp_path, Path("/opt/cuda")} <= set(folders)
