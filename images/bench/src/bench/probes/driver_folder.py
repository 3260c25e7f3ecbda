"""Finds the driver where a node has put it into a container whose image does not look there."""

import ctypes
from pathlib import Path

LIBRARY = "libnvidia-ml.so.1"
GKE_FOLDER = Path("/usr/local/nvidia/lib64")
"""Where GKE's device plugin mounts the driver; it runs no ldconfig, so that images have to name the folder:
https://github.com/keras-team/kinetic/issues/269, https://github.com/NVIDIA/dcgm-exporter/issues/484."""


def explain_unseen_driver(folder: Path = GKE_FOLDER) -> str | None:
    """Return how to mend an image that does not look into `folder`, where the driver lies; None if that is not so."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        if (folder / LIBRARY).exists():
            return (
                f"the image does not look for NVIDIA's driver in {folder}, where this node has put it; set "
                f"LD_LIBRARY_PATH={folder} in the image, or in `environment` of the profile"
            )
    return None
