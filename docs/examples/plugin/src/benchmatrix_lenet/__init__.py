"""LeNet-5 for benchmatrix. This module imports no framework: the tool reads it too."""

from bench.registry import ModelSpec, Reference

LENET5 = ModelSpec(
    description="LeNet-5 (LeCun et al. 1998) with ReLU, max-pooling and dense subsampling",
    package="benchmatrix_lenet",
    dialects=("torch",),
    task="image-classification",
    input_size=32,
    num_classes=10,
    min_input_size=32,
    references=(Reference(32, 10, (62_006,), 651_720 / 1e9, "summed over the layers by hand"),),
)
