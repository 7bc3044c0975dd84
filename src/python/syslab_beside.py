"""What is looked at beside the values of a Python class's call on a GPU: whether it holds while others run in other
streams, whether it left its inputs as they were, and whether it waited for them.

Needs torch.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from syslab_failures import WrongAnswer
from syslab_tensors import NoDoorbell

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    import torch

    from syslab_tensors import TorchTensors

    Named = dict[str, torch.Tensor]
    Options = dict[str, Any]
    Function = Callable[..., Named]  # of inputs, options, timed, bell

ROUNDS = 3  # so that calls overlap wherever their kernels begin
GATES = 10  # of the usual length: all is to be queued meanwhile


def other_values(tensor: torch.Tensor, number: int) -> torch.Tensor:
    """A tensor of the same kind and shape with other content: backwards, and, of floating point, a little smaller each
    time."""
    turned = tensor.flip(-1) if tensor.dim() else tensor.clone()
    return turned.mul(1 - 2 ** -(number + 1)) if tensor.is_floating_point() or tensor.is_complex() else turned


def run_beside(tensors: TorchTensors, function: Function, inputs: Named, options: Options, streams: int) -> Named:
    """What the call returns while calls of other values run in `streams` less one other streams: they are queued
    before, between and behind a few of it, each stream behind a wait, so that they begin at once. It is not timed."""
    cuda = tensors.torch.cuda
    others = [(cuda.Stream(), {name: other_values(tensor, i) for name, tensor in inputs.items()})
              for i in range(streams - 1)]
    kept = []  # memory that other streams still use

    def call(content: Named) -> Named:
        kept.append(function(content, dict(options), lambda body, _reads: body(), NoDoorbell()))
        return kept[-1]

    def call_others() -> None:
        for stream, content in others:
            with cuda.stream(stream):
                call(content)

    call(inputs)  # what compiles or loads at its first call has done so before the waits begin
    cuda.synchronize()
    for stream in (cuda.current_stream(), *(stream for stream, _ in others)):
        with cuda.stream(stream):
            cuda._sleep(GATES * tensors.GATE_CYCLES)
    for _ in range(ROUNDS):
        call_others()
        values = call(inputs)
    call_others()
    cuda.synchronize()
    return values


def demand_same_inputs(torch: ModuleType, function: str, given: Named, inputs: Named) -> None:
    """A call had copies of what the host gave, at which the host does not look: none but the gradient that came in is
    changed."""
    if not function.startswith(("attention_", "weighted_sum_")):
        return
    for name, tensor in inputs.items():
        if function.endswith("_backward") and name.startswith("d"):
            continue
        there, here = (one.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for one in (tensor, given[name]))
        if not torch.equal(there, here):
            raise WrongAnswer(f"the call changed its input '{name}': whoever calls reads it again; work on a copy",
                              "input_changed")


def look_for_early_reads(tensors: TorchTensors, function: Function, inputs: Named, options: Options,
                         values: Named) -> None:
    """NaN that goes away when the inputs are there before the call begins comes from reading them too early."""
    if not tensors.has_nan(values.values()):
        return

    def untimed(body: Callable[[], Any], _reads: object) -> Any:
        tensors.torch.cuda.synchronize()
        value = body()
        tensors.torch.cuda.synchronize()
        return value

    if not tensors.has_nan(function(inputs, options, untimed, NoDoorbell()).values()):
        raise RuntimeError("the call read its inputs before torch's current stream had written them: it works on a "
                           "stream of its own that does not wait for that one; queue the work there, or let its stream "
                           "wait first")
