"""CycleGAN in TensorFlow and JAX: losses, passes, gradients and the image pool, against figures by hand."""

import pytest

from framework_programs import Answers

POOL_SIZE = 50


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_cyclegans_losses_are_those_of_its_authors(answers: dict[str, Answers], framework: str) -> None:
    """By hand: a = 1, b = -1; generators multiply by 0.5 (a to b) and 3 (b to a), discriminators by 1.

    Fakes: of b 0.5, of a -3. Generators: least squares (0.5 - 1)^2 + (-3 - 1)^2 = 16.25, cycle |1.5 - 1| + |-1.5 + 1|
    = 1, identity |-0.5 + 1| + |3 - 1| = 2.5; together 16.25 + 10 x 1 + 10 x 0.5 x 2.5. Discriminators: of a
    (1 - 1)^2 + (-3)^2 = 9, of b (-1 - 1)^2 + 0.5^2 = 4.25; half of it.
    """
    translation = answers[framework]["translation"]
    assert translation["losses"] == [38.75, 6.625]
    assert (translation["fakes"], translation["num_handed_on"]) == ([-3.0, 0.5], 0)


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_a_cyclegan_step_runs_six_generators_and_six_discriminators(
    answers: dict[str, Answers], framework: str
) -> None:
    generators = {"generator_ab": 3, "generator_ba": 3}
    after_generators, after_discriminators = answers[framework]["translation"]["calls"]
    assert after_generators == generators | {"discriminator_a": 1, "discriminator_b": 1}
    assert after_discriminators == generators | {"discriminator_a": 3, "discriminator_b": 3}


def test_cyclegans_step_differentiates_no_more_than_it_needs(tensorflow: Answers) -> None:
    """By hand: a generator of one block has 6 convolutions and 2 transposed ones, a discriminator 5 convolutions.

    A transposed convolution is computed as a gradient to images, and its gradient to images as a convolution.
    """
    generator_runs, judged_fakes, discriminator_runs = 6, 2, 4
    expected = {
        "Conv2D": generator_runs * 6 + (judged_fakes + discriminator_runs) * 5 + generator_runs * 2,
        # The generators' filters in all their runs, the discriminators' in part two alone.
        "Conv2DBackpropFilter": generator_runs * 8 + discriminator_runs * 5,
        # To images: not of the four generators' first layers that see real images, nor past the fakes in part two.
        "Conv2DBackpropInput": generator_runs * 2 + generator_runs * 6 - 4 + judged_fakes * 5 + discriminator_runs * 4,
    }
    assert tensorflow["translation_graph"] == expected


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_the_image_pool_fills_first_and_then_swaps_half_of_the_newcomers(
    answers: dict[str, Answers], framework: str
) -> None:
    returned = answers[framework]["pool"]["returned"]
    assert returned[:POOL_SIZE] == list(range(1, POOL_SIZE + 1))
    is_swapped = [came != went for went, came in enumerate(returned[POOL_SIZE:], start=POOL_SIZE + 1)]
    # 1,000 throws of a coin: the standard deviation of their number is 16.
    assert sum(is_swapped) == pytest.approx(500, abs=64)


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_the_image_pool_gives_back_what_it_holds_and_keeps_what_it_swaps_in(
    answers: dict[str, Answers], framework: str
) -> None:
    returned = answers[framework]["pool"]["returned"]
    held = set(range(1, POOL_SIZE + 1))
    for number, came in enumerate(returned[POOL_SIZE:], start=POOL_SIZE + 1):
        if came != number:
            held.remove(came)
            held.add(number)
    assert len(held) == POOL_SIZE
