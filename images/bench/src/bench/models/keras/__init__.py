"""The models in Keras 3, layer by layer the same as in bench.models.torch."""
