"""The small trainings that the ranks of syslab_ranks.py do with what the user handed in (`mine`, of
syslab_handed_in.py).

The module's gradients are known in closed form and, with syslab's data, exact: for a parameter p that a step uses with
the numbers c of its batch (times `wide` where p is fp64, so that they need more bits than fp32 has), the loss has a
term sum(c * p + curve / 2 * p * p), whose gradient is c + curve * p. So it depends on the weights too, and training on
weights that are stale shows. The order in which a step uses parameters is the case's, and gradients become final in the
reverse of it.
"""
from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

import torch

import syslab_collectives
import syslab_held
from syslab_failures import Unsupported
from syslab_handed_in import Fault, demand_same_in_eval, need
from syslab_untouched import Untouched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Union

    from syslab_collectives import Collectives, Log
    from syslab_handed_in import Functions, Methods

    Case = dict[str, Any]
    Tensors = dict[str, torch.Tensor]
    Mine = Union[Methods, Functions]  # what was handed in

DTYPES = {"fp32": torch.float32, "fp64": torch.float64}
COMPUTE_DTYPES = {None: None, "fp16": torch.float16, "bf16": torch.bfloat16}


class Part(torch.nn.Module):
    """A layer: a place for parameters."""


def called(container: Any, case: Case, batch: torch.Tensor) -> torch.Tensor:
    """The container's loss. If the case has `keyword`, most of the batch is a keyword argument."""
    return container(batch[:1], numbers=batch[1:]) if case.get("keyword") else container(batch)


def backward(loss: torch.Tensor, log: Log, collectives: Collectives) -> None:
    """A backward pass, of which the other ranks and the log of collectives know."""
    log.in_backward = True
    collectives.tell()
    loss.backward()
    log.in_backward = False
    collectives.tell()


def joined(module: Probe | Chain, batch: torch.Tensor, numbers: torch.Tensor | None) -> torch.Tensor:
    """The whole batch, of what reached a module that was wrapped and called()."""
    if not module.keyword:
        return batch
    if numbers is None:
        raise Fault("forward(batch, numbers=...) of the container calls the module without the keyword argument "
                    "'numbers'; expected forward(*inputs, **kwargs), which passes on all that it gets")
    return torch.cat([batch, numbers])


class Probe(torch.nn.Module):
    def __init__(self, case: Case, start: torch.Tensor) -> None:
        super().__init__()
        self.uses, self.curve, self.wide = case["uses"], case["curve"], case.get("wide", 1)
        self.keyword = case.get("keyword", False)
        self.layers = torch.nn.ModuleList()
        self.used, at = [], 0
        for described in case["parameters"]:
            count = torch.Size(described["shape"]).numel()
            value = start[at:at + count].reshape(described["shape"]).to(DTYPES[described["dtype"]], copy=True)
            if described.get("strided") and value.dim() == 2:
                value = value.t().contiguous().t()
            parameter = torch.nn.Parameter(value, requires_grad=described["trains"])
            self.add(described["name"], parameter)
            self.used.append((described["name"], at, count))
            at += count
        self.total = at
        for tie in case["ties"]:
            self.add(tie["name"], self.find(case["parameters"][tie["to"]]["name"]))
        for described in case["buffers"]:
            count = torch.Size(described["shape"]).numel()
            layer, name = self.place(described["name"])
            layer.register_buffer(name, start[at:at + count].reshape(described["shape"]).clone())
            at += count
        self.aliases = {tie["to"]: tie["name"] for tie in case["ties"]}

    def __getattr__(self, name: str) -> Any:
        """The models of the hand-outs' tests call their layers fc1, fc2, …: who prints something of one has done
        nothing wrong."""
        number = name[2:] if name.startswith("fc") else ""
        if number.isdigit() and 0 < int(number) <= len(self.layers):
            return self.layers[int(number) - 1]
        return super().__getattr__(name)

    def place(self, name: str) -> tuple[Part, str]:
        _, layer, own = name.split(".")
        while len(self.layers) <= int(layer):
            self.layers.append(Part())
        return self.layers[int(layer)], own

    def add(self, name: str, parameter: torch.nn.Parameter) -> None:
        layer, own = self.place(name)
        layer.register_parameter(own, parameter)

    def find(self, name: str) -> torch.Tensor:
        layer, own = self.place(name)
        return getattr(layer, own)

    def forward(self, batch: torch.Tensor, numbers: torch.Tensor | None = None) -> torch.Tensor:
        """batch: the number of the step, then the numbers of each use of each parameter, which may be two. If the case
        has `keyword`, `numbers` is what follows the step."""
        batch = joined(self, batch, numbers)
        Untouched.of_module(self)
        loss = batch.new_zeros(())
        met = set()
        for index in self.uses[int(batch[0])]:
            name, at, count = self.used[index]
            parameter = self.find(self.aliases[index] if index in met and index in self.aliases else name)
            begin = 1 + (self.total if index in met else 0) + at
            numbers = batch[begin:begin + count].reshape(parameter.shape).to(parameter.dtype)
            if parameter.dtype == torch.float64:
                numbers = numbers * self.wide
            term = (numbers * parameter).sum() + self.curve / 2 * (parameter * parameter).sum()
            loss = loss + term.to(torch.float32)
            met.add(index)
        return loss


def watch_gradients(module: torch.nn.Module, log: Log) -> list[Any]:
    """Counts gradients of this backward pass that are final. The result must be kept."""
    nodes = []
    for parameter in module.parameters():
        if parameter.requires_grad:
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]

            def count(*_: Any) -> None:
                log.ready += 1

            node.register_hook(count)
            nodes.append(node)
    return nodes


def of_container(container: Any, case: Case) -> list[torch.nn.Parameter]:
    """Its parameters, which must be the module's own in their order."""
    if not isinstance(container, torch.nn.Module):
        raise Fault(f"{type(container).__name__} is no torch.nn.Module: parameters(), state_dict() and calls must "
                    "reach the wrapped module")
    found = list(container.parameters())
    shapes, expected = [list(p.shape) for p in found], [p["shape"] for p in case["parameters"]]
    if shapes != expected:
        raise Fault(f"parameters() of {type(container).__name__} has tensors of shapes {shapes}, the wrapped module's "
                    f"are {expected}")
    return found


def flat(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([t.detach().reshape(-1).to(torch.float32) for t in tensors]).cpu() if tensors else torch.empty(0)


def low(tensors: list[torch.Tensor]) -> torch.Tensor:
    """What fp32 leaves of numbers in fp64, of which flat() has the rest."""
    return flat([t.detach().double() - t.detach().float().double() for t in tensors])


def gradients_of(parameters: list[torch.nn.Parameter]) -> list[torch.Tensor]:
    return [torch.full_like(p, float("nan")) if p.grad is None else p.grad for p in parameters]


def note_step(outputs: Tensors, rank: int, step: int, gradients: list[torch.Tensor] | None,
              weights: list[torch.nn.Parameter] | None) -> None:
    """Either may be None: there is nothing new."""
    for name, tensors in (("gradients", gradients), ("weights", weights)):
        if tensors is not None:
            outputs[name][rank, step] = flat(tensors)
            if name + "_low" in outputs:
                outputs[name + "_low"][rank, step] = low(tensors)


def batch_of(case: Case, inputs: Tensors, step: int, part: int, rank: int, device: torch.device) -> torch.Tensor:
    return torch.cat([torch.tensor([float(step)]), inputs["batch"][step, part, rank]]).to(device)


def data_parallel(mine: Mine, case: Case, inputs: Tensors, outputs: Tensors, rank: int, collectives: Collectives,
                  device: torch.device) -> None:
    log = collectives.log
    module = Probe(case, inputs["start"][rank]).to(device)
    kept = watch_gradients(module, log)
    untouched = Untouched(case, device, rank, log)
    container = mine.container(module, *([case["bucket_mb"]] if "bucket_mb" in case else []))
    parameters = of_container(container, case)
    untouched.look(container, module, "after the container was made")
    outputs["state"][rank] = flat(parameters + list(container.buffers()))
    optimizer = torch.optim.SGD(parameters, lr=case["rate"])
    for step in range(case["steps"]):
        log.step = step
        if step == case["resume_at"]:
            saved = {name: value.clone() for name, value in container.state_dict().items()}
            module = Probe(case, inputs["start"][rank] + 1).to(device)
            kept = watch_gradients(module, log)
            container = mine.container(module, *([case["bucket_mb"]] if "bucket_mb" in case else []))
            container.load_state_dict(saved)
            parameters = of_container(container, case)
            untouched.look(container, module, "after the container was made")
            optimizer = torch.optim.SGD(parameters, lr=case["rate"])
        optimizer.zero_grad(set_to_none=case["set_to_none"][step])
        mine.begin_batch(container, optimizer)
        for part in range(case["backwards"]):
            log.ready = 0
            loss = called(container, case, batch_of(case, inputs, step, part, rank, device))
            untouched.look_at_numbers(f"after forward() in step {step}")
            backward(loss, log, collectives)
            mine.after_backward(container, optimizer)
            untouched.look(container, module, f"after {mine.finish} in step {step}")
        note_step(outputs, rank, step, gradients_of(parameters), None)
        optimizer.step()
        note_step(outputs, rank, step, None, parameters)
    if case.get("evaluates"):
        demand_same_in_eval(container, module, batch_of(case, inputs, step, 0, rank, device))
    del kept


def counted(base: Any, made: list[Any]) -> Any:
    """The optimizer that is handed to the user's class, each object of which is noted."""

    class Counted(base):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self)

    Counted.__name__ = Counted.__qualname__ = base.__name__
    return Counted


def groups_of(parameters: list[torch.nn.Parameter], groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [dict(group["options"], params=[parameters[i] for i in group["members"]]) for group in groups]


def clear_and_look(optimizer: Any, case: Case, parameters: list[torch.nn.Parameter], step: int) -> None:
    need(optimizer, "zero_grad")
    if "set_to_none" in inspect.signature(optimizer.zero_grad).parameters:
        optimizer.zero_grad(set_to_none=case["set_to_none"][step])
    else:
        optimizer.zero_grad()
    for described, parameter in zip(case["parameters"], parameters):
        if parameter.grad is not None and bool(parameter.grad.any()):
            raise Fault(f"zero_grad() left the gradient of '{described['name']}' as it was before step {step}: it must "
                        "clear those of other ranks' parameters, too")


def change_rates(optimizer: Any, case: Case, step: int) -> None:
    """As a scheduler does between steps."""
    if not case.get("rate_changes"):
        return
    groups = getattr(optimizer, "param_groups", None)
    if not groups:
        raise Fault(f"{type(optimizer).__name__} has no param_groups, in which a schedule changes learning rates")
    for group in groups:
        group["lr"] *= case["rate_changes"][step]


def sharded_optimizer(mine: Mine, case: Case, inputs: Tensors, outputs: Tensors, rank: int, collectives: Collectives,
                      device: torch.device) -> None:
    log = collectives.log
    made: list = []
    module = Probe(case, inputs["start"][rank]).to(device)
    parameters = list(module.parameters())
    base = counted(getattr(torch.optim, case["optimizer"]), made)
    first, later = [g for g in case["groups"] if g["from"] == 0], [g for g in case["groups"] if g["from"] > 0]
    given = (groups_of(parameters, first) if case["as_groups"]
             else [p for g in groups_of(parameters, first) for p in g["params"]])
    untouched = Untouched(case, device, rank, log)
    optimizer = mine.optimizer(given, base, **case["options"])
    untouched.look_at_numbers("after the optimizer was made")
    need(optimizer, "step")
    outputs["state"][rank] = flat(parameters + list(module.buffers()))
    for step in range(case["steps"]):
        log.step = step
        for group in groups_of(parameters, [g for g in later if g["from"] == step]):
            need(optimizer, "add_param_group")
            optimizer.add_param_group(group)
        if case["checks_zero_grad"]:
            clear_and_look(optimizer, case, parameters, step)
        change_rates(optimizer, case, step)
        for parameter in parameters:
            parameter.grad = None

        def closure() -> torch.Tensor:
            loss = module(batch_of(case, inputs, step, 0, rank, device))
            loss.backward()
            return loss

        if case["closure"]:
            expected = float(module(batch_of(case, inputs, step, 0, rank, device)))
            returned = optimizer.step(closure)
            if returned is None or float(returned) != expected:
                raise Fault(f"step(closure) returned {returned} in step {step}, the closure {expected}: its loss must "
                            "come back")
        else:
            closure()
            optimizer.step()
        untouched.look_at_numbers(f"after step() in step {step}")
        note_step(outputs, rank, step, gradients_of(parameters), parameters)
    outputs["held"][rank, 0] = float(sum(t.numel() for t in syslab_held.state_tensors(made)))
    if case.get("looks_at_memory"):
        syslab_held.demand_no_other_state(made, rank, collectives, [*inputs.values(), *outputs.values()], device)


def layer_makers() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The hand-out's own linear layer and embedding where the user's file has imported them, else torch's."""
    own = sys.modules.get("cs336_basics.model")
    if own is not None and hasattr(own, "Linear") and hasattr(own, "Embedding"):
        return own.Linear, own.Embedding
    return lambda inputs, outputs: torch.nn.Linear(inputs, outputs, bias=False), torch.nn.Embedding


class Chain(torch.nn.Module):
    """An embedding, linear layers and gains, one behind the other. Each has numbers x and c of its own in a batch: for
    its output y (of a token x, of numbers x) the loss has the term sum(c * y + curve / 2 * y * y). What comes from the
    layer before is taken times zero, so that gradients take the way of a model's and still have a closed form. With a
    compute_dtype numbers go on in the dtype that the layer before gave, as activations of the hand-out's model do; the
    loss is fp32."""

    def __init__(self, case: Case, start: torch.Tensor) -> None:
        super().__init__()
        self.curve, self.layers, self.kinds, at = case["curve"], torch.nn.ModuleList(), [], 0
        self.keyword = case.get("keyword", False)
        linear, embedding = layer_makers()
        for described in case["layers"]:
            shape, kind = described["shape"], described["kind"]
            layer = (Gain(shape[0]) if kind == "gain" else embedding(*shape) if kind == "embedding"
                     else linear(shape[1], shape[0]))
            count = torch.Size(shape).numel()
            if described["shares"] >= 0:
                layer.weight = self.layers[described["shares"]].weight
            else:
                layer.weight.data.copy_(start[at:at + count].reshape(shape))
                at += count
            self.layers.append(layer)
            self.kinds.append((kind, shape))

    def forward(self, batch: torch.Tensor, numbers: torch.Tensor | None = None) -> torch.Tensor:
        batch = joined(self, batch, numbers)
        Untouched.of_module(self)
        loss, before, at = batch.new_zeros(()), batch.new_zeros(()), 0
        for layer, (kind, shape) in zip(self.layers, self.kinds):
            inputs, outputs = {"gain": (0, shape[0]), "embedding": (1, shape[-1]),
                               "linear": (shape[-1], shape[0])}[kind]
            x, c = batch[at:at + inputs], batch[at + inputs:at + inputs + outputs]
            at += inputs + outputs
            own = (before * 0 + (x if kind == "linear" else batch.new_ones(outputs))).to(before.dtype)
            y = layer(x.long())[0] if kind == "embedding" else layer(own)
            before = y.sum()
            y = y.to(batch.dtype)
            loss = loss + (c * y + self.curve / 2 * y * y).sum()
        return loss


class Gain(torch.nn.Module):
    """As a norm's weight: it is not sharded."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.weight * x).to(x.dtype)


def look_at_gradients(mine: Mine, container: Any, step: int) -> None:
    for name, parameter in container.named_parameters():
        if parameter.requires_grad and parameter.grad is None:
            raise Fault(f"'{name}' has no gradient in step {step} when {mine.finish} has returned")
        if parameter.requires_grad and (parameter.grad.shape != parameter.shape or parameter.grad.dtype
                                        != parameter.dtype):
            raise Fault(f"the gradient of '{name}' in step {step} is {list(parameter.grad.shape)} of "
                        f"{parameter.grad.dtype}, the parameter {list(parameter.shape)} of {parameter.dtype}: the "
                        "optimizer wants them alike")


def demand_products(dtype: torch.dtype, device: torch.device) -> None:
    """That this torch multiplies in it."""
    try:
        torch.ones(2, 2, dtype=dtype, device=device) @ torch.ones(2, 2, dtype=dtype, device=device)
    except RuntimeError:
        where = "CPU" if device.type == "cpu" else "GPU"
        raise Unsupported(f"needs torch >= 2.1, whose {where} multiplies in {str(dtype)[6:]}; this is torch "
                          f"{torch.__version__}") from None


def sharding(mine: Mine, case: Case, module: Chain, compute: torch.dtype | None, device: torch.device) -> Any:
    """The container, which computes in a dtype that the case names; or without one if it or torch cannot, and the case
    has `or_without`."""
    try:
        if compute is not None:
            demand_products(compute, device)
            return mine.computing_in(compute, module)
    except Unsupported:
        if not case.get("or_without"):
            raise
    return mine.container(module)


def fully_sharded(mine: Mine, case: Case, inputs: Tensors, outputs: Tensors, rank: int, collectives: Collectives,
                  device: torch.device) -> None:
    log, compute = collectives.log, COMPUTE_DTYPES[case.get("compute_dtype")]
    module = Chain(case, inputs["start"][rank]).to(device)
    untouched = Untouched(case, device, rank, log)
    container = sharding(mine, case, module, compute, device)
    untouched.look(container, module, "after the container was made")
    outputs["held"][rank, 0] = syslab_held.held_elements(container)
    sharded = [(one["name"], at, count) for one, at, count in placed(unshared(case)) if one["kind"] != "gain"]
    whole = syslab_held.WholeWeights(sharded, inputs["start"][rank], case["ranks"])
    optimizer = torch.optim.SGD(container.parameters(), lr=case["rate"])
    for step in range(case["steps"]):
        log.step = step
        optimizer.zero_grad(set_to_none=True)
        loss = called(container, case, inputs["batch"][step, rank].to(device))
        untouched.look_at_numbers(f"after forward() in step {step}")
        backward(loss, log, collectives)
        mine.after_backward(container, optimizer)
        untouched.look(container, module, f"after {mine.finish} in step {step}")
        look_at_gradients(mine, container, step)
        optimizer.step()
        gathered = mine.whole_weights(container)
        for described, at, count in placed(unshared(case)):
            if described["name"] not in gathered or list(gathered[described["name"]].shape) != described["shape"]:
                found = {name: list(value.shape) for name, value in gathered.items()}
                raise Fault(f"{mine.gather} returned {found}, and '{described['name']}' {described['shape']} is wanted "
                            "among it")
            outputs["weights"][rank, step, at:at + count] = flat([gathered[described["name"]]])
        outputs["held"][rank, 0] = max(float(outputs["held"][rank, 0]), syslab_held.held_elements(container))
        if case.get("looks_at_memory"):
            del gathered, loss  # what a graph keeps is no class's
            whole.add(outputs["weights"][rank, step])
            whole.demand_parts([*inputs.values(), *outputs.values()])


def unshared(case: Case) -> list[dict[str, Any]]:
    """Its layers with a weight of their own."""
    return [one for one in case["layers"] if one["shares"] < 0]


def placed(described: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Each with its first element among all, and their number."""
    at = 0
    for one in described:
        count = torch.Size(one["shape"]).numel()
        yield one, at, count
        at += count


WAYS = {"data_parallel": data_parallel, "sharded_optimizer": sharded_optimizer, "fully_sharded": fully_sharded}
FIELDS = ("step", "kind", "elements", "bytes", "ready", "in_backward", "async", "waited", "line")
NAME_NUMBERS = 8


def as_numbers(name: str) -> list[float]:
    """The end of a file's name, three bytes a number, which fp32 holds exactly; 0 where there is no more."""
    text = name.encode("ascii", "replace")[-3 * NAME_NUMBERS:].ljust(3 * NAME_NUMBERS, b"\0")
    return [float(int.from_bytes(text[i:i + 3], "big")) for i in range(0, len(text), 3)]


def note_events(events: list[dict[str, Any]], rows: torch.Tensor) -> None:
    """One row a collective behind a row with their number; what has no row is counted."""
    rows[0, 0] = float(len(events))
    for row, event in zip(rows[1:], events):
        row.copy_(torch.tensor([float(event[field]) for field in FIELDS] + as_numbers(event["file"])))


def train(mine: Mine, case: Case, inputs: Tensors, outputs: Tensors, rank: int, collectives: Collectives,
          device: torch.device) -> None:
    mine.demand_way(case["way"])
    collectives.begin(case["late"])
    WAYS[case["way"]](mine, case, inputs, outputs, rank, collectives, device)
    note_events(collectives.log.events, outputs["events"][rank])
    collectives.end()


Mismatch = syslab_collectives.Mismatch
