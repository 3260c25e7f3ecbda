"""Models as Keras 3 models: a Cell in, the model out. The mirror of bench.models.torch, layer by layer."""
