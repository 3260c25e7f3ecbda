"""Training and inference steps as one would write them in PyTorch without benchmatrix, to compare the harness with.

They share the models' definitions and inputs with the package and nothing else: losses, optimisers, precision and CUDA
graphs are written here again, as plainly as a good engineer would.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from hand_written_llama import write_language_step
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, l1_loss, mse_loss

from bench.models import build_model
from bench.schema import Cell
from bench.tasks.inputs import make_inputs

POOL_SIZE = 50  # images, as CycleGAN's authors keep (Zhu et al., arXiv 1703.10593, section 4)
HALF = {"fp16": torch.float16, "bf16": torch.bfloat16}
StepFunction = Callable[[], Any]


def write_step(cell: Cell) -> StepFunction:
    """Return a function that starts one step of the cell on its device, eager or as well compiled as by hand."""
    torch.manual_seed(cell.seed)
    device = "cuda" if cell.device == "gpu" else "cpu"
    if cell.phase in ("prefill", "decode"):
        step = write_language_step(cell)
        return capture(step) if cell.mode == "compiled" and cell.device == "gpu" else step
    inputs = [torch.from_numpy(array).to(device) for array in make_inputs(cell)]
    model: Any = build_model(cell, "torch").to(device)
    if cell.mode == "compiled" and (cell.device == "cpu" or cell.precision != "fp32"):
        model = model.to(memory_format=torch.channels_last)
        inputs = [x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs]
    if cell.phase == "infer":
        step = write_inference(cell, model, inputs)
    elif cell.model == "cyclegan":
        step = write_cyclegan(cell, model, inputs)
    else:
        step = write_training(cell, model, inputs)
    return capture(step) if cell.mode == "compiled" and cell.device == "gpu" else step


def write_inference(cell: Cell, model: Any, inputs: list[Tensor]) -> StepFunction:
    """Return one forward pass with weights of the cell's precision."""
    if cell.precision in HALF:
        model = model.to(HALF[cell.precision])
        inputs = [x.to(HALF[cell.precision]) if x.is_floating_point() else x for x in inputs]
    network = (model["generator_ab"] if cell.model == "cyclegan" else model).eval()
    arguments = inputs if cell.model == "matmul" else inputs[:1]
    forward = torch.compile(network) if cell.mode == "compiled" else network
    return torch.inference_mode()(lambda: forward(*arguments))


def write_training(cell: Cell, model: nn.Module, inputs: list[Tensor]) -> StepFunction:
    """Return a classifier's step: cross entropy, backward, Adam."""
    samples, labels = inputs
    optimizer = make_adam(cell, model.parameters(), learning_rate=1e-3)
    scaler = torch.amp.GradScaler(samples.device.type, enabled=cell.precision == "fp16")

    def compute_loss() -> Tensor:
        return cross_entropy(model(samples), labels)

    forward = torch.compile(compute_loss) if cell.mode == "compiled" else compute_loss

    def step() -> None:
        optimizer.zero_grad()
        with autocast(cell, samples):
            loss = forward()
        update(loss, optimizer, scaler)

    return step


def write_cyclegan(cell: Cell, nets: nn.ModuleDict, inputs: list[Tensor]) -> StepFunction:
    """Return a function that does one training step of CycleGAN: generators, then discriminators on pooled images."""
    real_a, real_b = inputs
    generators, discriminators = (
        [parameter for name in names for parameter in nets[name].parameters()]
        for names in (("generator_ab", "generator_ba"), ("discriminator_a", "discriminator_b"))
    )
    adam_g, adam_d = (
        make_adam(cell, parameters, 2e-4, betas=(0.5, 0.999)) for parameters in (generators, discriminators)
    )
    scalers = [torch.amp.GradScaler(real_a.device.type, enabled=cell.precision == "fp16") for _ in range(2)]
    compute_generator_loss: Any = write_generator_loss(nets, real_a, real_b)
    compute_discriminator_loss: Any = write_discriminator_loss(nets, real_a, real_b)
    if cell.mode == "compiled":
        compute_generator_loss = torch.compile(compute_generator_loss)
        compute_discriminator_loss = torch.compile(compute_discriminator_loss)

    def step() -> None:
        for parameter in discriminators:
            parameter.requires_grad_(False)
        adam_g.zero_grad()
        with autocast(cell, real_a):
            loss, fake_a, fake_b = compute_generator_loss()
        update(loss, adam_g, scalers[0])
        for parameter in discriminators:
            parameter.requires_grad_(True)
        adam_d.zero_grad()
        with autocast(cell, real_a):
            loss = compute_discriminator_loss(fake_a, fake_b)
        update(loss, adam_d, scalers[1])

    return step


def write_generator_loss(
    nets: nn.ModuleDict, real_a: Tensor, real_b: Tensor
) -> Callable[[], tuple[Tensor, Tensor, Tensor]]:
    """Return a function that computes the generators' loss and the fakes of both domains, without their gradients."""
    g_ab, g_ba, d_a, d_b = (
        nets[name] for name in ("generator_ab", "generator_ba", "discriminator_a", "discriminator_b")
    )

    def compute_loss() -> tuple[Tensor, Tensor, Tensor]:
        fake_b, fake_a = g_ab(real_a), g_ba(real_b)
        cycle = l1_loss(g_ba(fake_b), real_a) + l1_loss(g_ab(fake_a), real_b)
        identity = l1_loss(g_ab(real_b), real_b) + l1_loss(g_ba(real_a), real_a)
        return (
            compute_adversarial_loss(d_b, fake_b, 1)
            + compute_adversarial_loss(d_a, fake_a, 1)
            + 10 * cycle
            + 5 * identity,
            fake_a.detach(),
            fake_b.detach(),
        )

    return compute_loss


def write_discriminator_loss(nets: nn.ModuleDict, real_a: Tensor, real_b: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function that computes the discriminators' loss on real images and on pools of fakes.

    The pools stay on the device, so that a CUDA graph can hold the whole step.
    """
    d_a, d_b = nets["discriminator_a"], nets["discriminator_b"]
    pools = [torch.zeros(POOL_SIZE, *real_a.shape[1:], device=real_a.device) for _ in range(2)]
    count = torch.zeros((), dtype=torch.int64, device=real_a.device)

    def compute_loss(fake_a: Tensor, fake_b: Tensor) -> Tensor:
        with torch.no_grad():
            old_a, old_b = draw(pools[0], count, fake_a), draw(pools[1], count, fake_b)
            count.add_(len(fake_a))
        loss_a = compute_adversarial_loss(d_a, real_a, 1) + compute_adversarial_loss(d_a, old_a, 0)
        return 0.5 * (loss_a + compute_adversarial_loss(d_b, real_b, 1) + compute_adversarial_loss(d_b, old_b, 0))

    return compute_loss


def compute_adversarial_loss(discriminator: nn.Module, images: Tensor, target: float) -> Tensor:
    """Return the least-squares loss of the discriminator's predictions against `target`: 1 for real, 0 for fake."""
    prediction = discriminator(images)
    return mse_loss(prediction, torch.full_like(prediction, target))


def draw(pool: Tensor, count: Tensor, fakes: Tensor) -> Tensor:
    """Fill the pool with the first fakes; later return each, or swap it for a random one of the pool with p = 0.5."""
    drawn = []
    for new in fakes.float():
        full = count >= POOL_SIZE
        slot = torch.where(full, torch.randint(POOL_SIZE, (1,), device=new.device), count.clamp(max=POOL_SIZE - 1))
        swap = full & (torch.rand((), device=new.device) < 0.5)
        old = pool.index_select(0, slot)[0]
        pool.index_copy_(0, slot, torch.where(full & ~swap, old, new)[None])
        drawn.append(torch.where(swap, old, new))
    return torch.stack(drawn)


def update(loss: Tensor, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler) -> None:
    """Compute the gradients of the loss, scaled for fp16, and take one step of the optimizer."""
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def make_adam(cell: Cell, parameters: Any, learning_rate: float, **settings: Any) -> torch.optim.Adam:
    """Return PyTorch's default Adam in eager mode, otherwise the fused one that a CUDA graph can capture."""
    if cell.mode == "compiled":
        settings |= {"fused": True, "capturable": cell.device == "gpu"}
    return torch.optim.Adam(parameters, lr=learning_rate, **settings)


def autocast(cell: Cell, tensor: Tensor) -> AbstractContextManager[Any]:
    """Return a context of mixed precision where the cell asks for it."""
    return torch.autocast(tensor.device.type, HALF.get(cell.precision), enabled=cell.precision in HALF)


def capture(step: StepFunction) -> StepFunction:
    """Return a replay of the whole step, captured as one CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = step()

    def replay(alive: Any = (step, kept)) -> Any:  # the graph reads their memory
        graph.replay()
        return alive[1]

    return replay
