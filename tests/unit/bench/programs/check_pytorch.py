"""Check what PyTorch does with cells; conformance.py has what others do as well.

Started with TF32 and reduced precision switched on, so that only switching them off explains that they are off.
"""

from dataclasses import astuple
from typing import Any

import torch

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True

import conformance  # noqa: E402
import numpy as np  # noqa: E402
from conformance import NUM_STEPS, Examiner, catch, infer, read_weights  # noqa: E402
from torch.autograd import DeviceType  # noqa: E402
from torch.autograd.profiler_util import FunctionEvent  # noqa: E402

import bench.models.torch as definitions  # noqa: E402
from bench.frameworks import pytorch  # noqa: E402
from bench.frameworks.pytorch import (  # noqa: E402
    PyTorchWorkload,
    ReplicatedWorkload,
    choose_inductor_options,
    set_switches,
)
from bench.probes.cpu import limit_library_threads  # noqa: E402
from bench.schema import CompiledPrograms  # noqa: E402
from bench.tasks.torch import ImagePool  # noqa: E402
from factories import make_cell  # noqa: E402

# Every layer is some programs for the compiler. Here, for the replicas too, which begin with this file.
vars(definitions)["CONV6_STAGES"] = ((8, 2), (16, 2))
MODES = ("eager", "compiled")
EAGER = ("eager",)


def check_tf32_is_off_and_the_record_says_what_is(_: Examiner) -> None:
    limit_library_threads(1)
    settings = pytorch.load(make_cell(), 1).settings
    switches = {
        "matmul_tf32": torch.backends.cuda.matmul.allow_tf32,
        "cudnn_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "num_threads": torch.get_num_threads(),
        "num_interop_threads": torch.get_num_interop_threads(),
    }
    assert list(switches.values()) == [False, False, True, 1, 1]
    assert {name: settings[name] for name in switches} == switches


def check_the_record_says_what_was_decided_for_the_mode(examiner: Examiner) -> None:
    decided = {
        "eager": ("contiguous (NCHW)", False, False, "default Adam", "none"),
        "compiled": ("channels last (NHWC)", True, False, "fused Adam", "none"),  # there is no CUDA here
    }
    names = ("memory_format", "torch_compile", "cuda_graph", "optimizer", "inductor_options")
    for mode, expected in decided.items():
        settings = examiner.build(mode=mode).settings
        assert tuple(settings[name] for name in names) == expected


def check_programs_are_counted_that_were_compiled_or_loaded(_: Examiner) -> None:
    programs = pytorch.PyTorch(make_cell(mode="compiled"), 1).count_programs()
    assert programs.num_loaded + (programs.num_compiled or 0) > 0
    assert pytorch.PyTorch(make_cell(), 1).count_programs() == CompiledPrograms()


def check_only_inference_on_a_gpu_has_options_and_every_kernel_is_tried_where_that_is_quick(_: Examiner) -> None:
    options = {
        (device, model, phase): choose_inductor_options(
            make_cell(model=model, device=device, phase=phase, mode="compiled")
        )
        for device in ("cpu", "gpu")
        for model in ("conv6", "resnet18")
        for phase in ("train", "infer")
    }
    assert {cell: chosen for cell, chosen in options.items() if chosen} == {
        ("gpu", "conv6", "infer"): {"max_autotune": True},
        ("gpu", "resnet18", "infer"): {"coordinate_descent_tuning": True},
    }
    decoding = make_cell(model="llama-tiny", device="gpu", phase="decode", mode="compiled", num_classes=None)
    tuned = [choose_inductor_options(decoding.model_copy(update={"batch_size": size})) for size in (1, 2)]
    assert tuned == [{"coordinate_descent_tuning": True}, {}]


def check_running_out_of_memory_is_told_from_other_errors(_: Examiner) -> None:
    framework = pytorch.PyTorch(make_cell(), 1)
    for error in (
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported later"),  # of a context
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("std::bad_alloc"),
    ):
        assert framework.is_out_of_memory(error), error
    assert not framework.is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not framework.is_out_of_memory(ValueError("DefaultCPUAllocator"))
    assert framework.is_out_of_memory(catch(lambda: torch.empty(10**15)))


def check_inference_runs_without_gradients(examiner: Examiner) -> None:
    workload = examiner.build("resnet18-cifar", mode="eager", phase="infer")
    output = infer(workload)
    model = workload.task.networks["model"]
    assert (output.is_inference(), output.requires_grad, model.training) == (True, False, False)
    assert all(parameter.grad is None for parameter in model.parameters())


def check_two_processes_with_half_the_batch_train_as_one_with_the_whole(examiner: Examiner) -> None:
    """Adam divides a gradient by its size, so rounding shows where it is next to zero.

    To 0.1 % of the way gone with AVX-512, to 2 % on a CPU without it, whose convolutions of 4 and of 8 samples add up
    in another order. Processes that did not exchange their gradients would be where half the batch alone leads. Some
    steps are synchronised one by one, as in the timed window, some run back to back.
    """
    whole = make_cell(batch_size=8)
    alone = PyTorchWorkload(whole, 1)
    together = ReplicatedWorkload(whole.model_copy(update={"num_gpus": 2}), 1)
    half = PyTorchWorkload(make_cell(batch_size=4), 1)
    assert [len(workload.inputs[0]) for workload in (alone, together)] == [8, 4]

    def read(workload: PyTorchWorkload) -> Any:
        return np.concatenate([weights.ravel() for weights in read_weights(workload)])

    start = read(together)
    together.spin_up()
    for _ in range(NUM_STEPS):
        for workload in (alone, together, half):
            workload.run_step()
            workload.synchronize()
    for workload in (alone, together, half):
        for _ in range(NUM_STEPS):
            workload.run_step()
        workload.synchronize()
    one, other, less = (read(workload) for workload in (alone, together, half))
    way, apart, expected = (float(np.linalg.norm(one - weights)) for weights in (start, other, less))
    assert apart / way < min(0.05, expected / way / 5)


def check_kernels_and_copies_of_a_profile_count_and_neither_launches_nor_annotations(_: Examiner) -> None:
    def make_event(name: str, device: DeviceType, start: float, end: float, **fields: Any) -> FunctionEvent:
        return FunctionEvent(0, name, 0, start, end, device_type=device, device_index=1, **fields)

    events = (
        make_event("cudaLaunchKernel", DeviceType.CPU, 0, 5),
        make_event("void implicit_convolve_sgemm", DeviceType.CUDA, 10, 20),
        make_event("Memcpy HtoD (Pageable -> Device)", DeviceType.CUDA, 40, 42),
        make_event("Memset (Device)", DeviceType.CUDA, 50, 51),
        make_event("Optimizer.step#Adam.step", DeviceType.CUDA, 0, 90, is_user_annotation=True),
    )
    assert [astuple(activity) for activity in pytorch.select_activities(events)] == [
        (1, "kernel", 10_000.0, 20_000.0),
        (1, "copy", 40_000.0, 42_000.0),
        (1, "copy", 50_000.0, 51_000.0),
    ]


def build_workload(cell: Any) -> PyTorchWorkload:
    set_switches(cell, 1)
    return PyTorchWorkload(cell, 1)


def open_pool() -> Any:
    torch.manual_seed(0)
    pool = ImagePool(1)
    return lambda numbers: pool(torch.from_numpy(numbers).reshape(3, 1, 1, 1).expand(3, 3, 1, 1))[:, 0, 0, 0].numpy()


if __name__ == "__main__":  # the replicas are started from this file again
    examiner = Examiner(
        framework="pytorch",
        modes=MODES,
        build_workload=build_workload,
        draw_weights=lambda workload: None,  # those of one seed are equal in both modes
        open_pool=open_pool,
        training={
            ("conv6", "fp32"): MODES,
            ("conv6", "bf16"): EAGER,  # inference is compiled in it
            ("conv6", "fp16"): EAGER,
            ("text-classifier", "fp32"): EAGER,
        },
        inference={("conv6", "fp32"): MODES, ("conv6", "bf16"): MODES, ("resnet18-cifar", "fp32"): EAGER},
        loss_tolerances={"fp32": (1e-4, 1e-4), "bf16": (1e-2, 1e-2), "fp16": (1e-2, 1e-2)},
        half_tolerance=2e-2,
        half_steps=NUM_STEPS,
        output_tolerances={"fp32": (1e-6, 1e-5), "bf16": (1e-6, 1e-3)},
    )
    name = check_programs_are_counted_that_were_compiled_or_loaded.__name__
    last = {name: globals().pop(name)}
    conformance.run_checks(examiner, globals(), vars(conformance), last)
