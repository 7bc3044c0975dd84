"""How the named tensors of an operator's call meet the user's functions: a plain class, or a torch.autograd.Function.
What either may be is said in syslab_worker.py.

Needs the standard library alone; torch for a torch.autograd.Function.
"""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from syslab_failures import Unsupported, WrongAnswer
from syslab_lacks import SETUP_CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import NoReturn, Union

    import numpy
    from torch import Tensor

    from syslab_gpu import GpuCall
    from syslab_tensors import Doorbell, NoDoorbell

    Array = Union[numpy.ndarray, Tensor]
    Arrays = dict[str, Array]
    Bell = Union[Doorbell, NoDoorbell, GpuCall]
    Timed = Callable[[Callable[[], Any], tuple[Array, ...]], Any]

# What hand-outs give a form of its own; every other function is a method of its name.
FUNCTIONS = ("attention_forward", "attention_backward", "weighted_sum_forward", "weighted_sum_backward")


def flatten_heads(tensor: Array, bell: Bell) -> Array:
    """(batch, heads, ...) to (batch * heads, ...): the hand-out's kernels know one batch dimension."""
    shape = (tensor.shape[0] * tensor.shape[1], *tensor.shape[2:])
    with contextlib.suppress(RuntimeError, AttributeError):  # it lies so that its content has to be copied
        if hasattr(tensor, "data_ptr"):
            return tensor.view(shape)
        flat = tensor.view()
        flat.shape = shape
        return flat
    bell.wait()
    return tensor.reshape(shape)


def attention_arguments(inputs: Arrays, options: dict[str, Any], bell: Bell) -> tuple[Arrays, bool]:
    q, k = inputs["q"], inputs["k"]
    if options.get("causal", 0) == 2 and q.shape[2] != k.shape[2]:
        raise Unsupported("a causal mask aligned at the last key has no place in the call (q, k, v, is_causal)")
    scale = options.get("scale", 0)
    if scale and abs(scale * q.shape[3] ** 0.5 - 1) > 1e-5:
        raise Unsupported(f"a scale of {scale} has no place in the call (q, k, v, is_causal), which means 1/sqrt(d)")
    if is_grouped(inputs):
        return dict(inputs), bool(options.get("causal", 0))
    tensors = {name: flatten_heads(tensor, bell) for name, tensor in inputs.items()}
    return tensors, bool(options.get("causal", 0))


def is_grouped(inputs: Arrays) -> bool:
    return inputs["q"].shape[1] != inputs["k"].shape[1]


@contextlib.contextmanager
def grouped_heads(inputs: Arrays) -> Iterator[None]:
    """Grouped heads need tensors (batch, heads, n, d), which the hand-out does not know: to refuse them is no fault."""
    try:
        yield
    except (Unsupported, WrongAnswer):
        raise
    except Exception as error:
        if not is_grouped(inputs):
            raise
        raise Unsupported(f"grouped heads ({inputs['q'].shape[1]} for queries, {inputs['k'].shape[1]} for keys) in "
                          f"tensors (batch, heads, n, d): {type(error).__name__}: {error}") from error


def expect_shape(name: str, value: Any, shape: Sequence[int]) -> Any:
    if not hasattr(value, "shape"):
        raise TypeError(f"{name} is of type {type(value).__name__}, expected an array of shape {tuple(shape)}")
    if tuple(value.shape) != tuple(shape) and not (tuple(value.shape) == () and tuple(shape) == (1,)):
        raise ValueError(f"{name} has shape {tuple(value.shape)}, expected {tuple(shape)}")
    return value


def results(names: Sequence[str], values: Any) -> Arrays:
    """Pairs what the user's function returned with its names."""
    if len(names) == 1:
        return {names[0]: values}
    if not isinstance(values, (tuple, list)) or len(values) != len(names):
        found = f"{len(values)} values" if isinstance(values, (tuple, list)) else type(values).__name__
        raise ValueError(f"expected a tuple of {len(names)} values ({', '.join(names)}), got {found}")
    return dict(zip(names, values))


class PlainClass:
    """forward and backward as ordinary methods; timed(body, what it reads) runs one call and takes its time."""

    def __init__(self, cls: type[Any]) -> None:
        self.object = cls()

    def named(self, function: str, inputs: Arrays, options: dict[str, Any], shapes: dict[str, Sequence[int]],
              timed: Timed) -> Arrays:
        """A method of the function's name, given tensors and numbers by their names: its results in the order of
        `shapes`."""
        method: Any = getattr(self.object, function, None)
        if method is None:
            raise Unsupported(f"{type(self.object).__name__} has no {function}")
        arguments = tuple(inputs.values())
        values = results(tuple(shapes), timed(lambda: method(**inputs, **options), arguments))
        return {name: expect_shape(name, value, shapes[name]) for name, value in values.items()}

    def attention_forward(self, inputs: Arrays, options: dict[str, Any], timed: Timed, bell: Bell) -> Arrays:
        t, causal = attention_arguments(inputs, options, bell)
        arguments = (t["q"], t["k"], t["v"])
        with grouped_heads(inputs):
            values = results(("out", "lse"), timed(lambda: self.object.forward(*arguments, causal), arguments))
            expect_shape("o", values["out"], t["q"].shape)
            expect_shape("lse", values["lse"], t["q"].shape[:-1])
        return values

    def has_method(self, function: str) -> bool:
        return hasattr(self.object, function)

    def backward(self) -> Callable[..., Any]:
        """The user's method; a class may leave it out."""
        method = getattr(self.object, "backward", None)
        if method is None:
            raise Unsupported(f"{type(self.object).__name__} has no backward")
        return method

    def attention_backward(self, inputs: Arrays, options: dict[str, Any], timed: Timed, bell: Bell) -> Arrays:
        t, causal = attention_arguments(inputs, options, bell)
        backward = self.backward()
        if options.get("gradient"):
            raise Unsupported(f"{type(self.object).__name__} is no torch.autograd.Function")
        arguments = (t["q"], t["k"], t["v"], t["out"], t["lse"], t["dout"])
        with grouped_heads(inputs):
            values = results(("dq", "dk", "dv"), timed(lambda: backward(*arguments, causal), arguments))
            return {name: expect_shape(name, value, t[name[1:]].shape) for name, value in values.items()}

    def weighted_sum_forward(self, inputs: Arrays, _options: dict[str, Any], timed: Timed, bell: Bell) -> Arrays:
        arguments = (inputs["x"], inputs["w"])
        y = timed(lambda: self.object.forward(*arguments), arguments)
        return {"y": expect_shape("y", y, inputs["x"].shape[:-1])}

    def weighted_sum_backward(self, inputs: Arrays, _options: dict[str, Any], timed: Timed, bell: Bell) -> Arrays:
        backward = self.backward()
        arguments = (inputs["x"], inputs["w"], inputs["dy"])
        values = results(("dx", "dw"), timed(lambda: backward(*arguments), arguments))
        return {name: expect_shape(name, value, inputs[name[1:]].shape) for name, value in values.items()}


def refuse_setup_context(*_arguments: Any) -> NoReturn:
    """In place of apply() of a class whose setup_context() this torch would never call."""
    error = TypeError("this torch's autograd.Function does not call setup_context()")
    setattr(error, "lacks", SETUP_CONTEXT)
    raise error


class AutogradFunction:
    """A torch.autograd.Function: the backward pass is what torch.autograd.grad runs, after an untimed forward."""

    def __init__(self, cls: type[Any]) -> None:
        import torch

        self.torch, self.apply, self.name = torch, cls.apply, cls.__name__
        base = torch.autograd.Function
        if hasattr(cls, "setup_context") and not hasattr(base, "setup_context"):
            self.apply = refuse_setup_context
        self.has_backward = cls.backward is not base.backward or cls.vjp is not base.vjp

    def has_method(self, _function: str) -> bool:
        return False

    def named(self, function: str, *_arguments: Any) -> NoReturn:
        raise Unsupported(f"{self.name} is a torch.autograd.Function, which has attention or the weighted sum; "
                          f"{function} is a method of that name in a plain class")

    def need_backward(self) -> None:
        if not self.has_backward:
            raise Unsupported(f"{self.name} has no backward")

    @staticmethod
    def leaves(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.detach().requires_grad_(True) for tensor in tensors)

    def leaves_of(self, t: Arrays, options: dict[str, Any]) -> tuple[Tensor, ...]:
        """Of q, k and v; one leaf for all three where a layer without projections is asked for."""
        if options.get("gradient") == "same":
            return self.leaves(t["q"]) * 3
        return self.leaves(t["q"], t["k"], t["v"])

    def another_call(self, tensors: Sequence[Tensor], problem: tuple[int, ...], backward: bool) -> None:
        """A pass of other values, of these rows of queries and keys, this width and this mask; that it may be refused
        is another law's matter."""
        queries, keys, width, causal = problem

        def of_size(tensor: Tensor, rows: int, width: int) -> Tensor:
            rows, width = (self.torch.arange(size, device=tensor.device) % had
                           for size, had in zip((rows, width), tensor.shape[-2:]))
            return tensor.detach().flip(1)[..., rows, :][..., width].contiguous()

        leaves = self.leaves(*(of_size(tensor, rows, width) for tensor, rows in zip(tensors, (queries, keys, keys))))
        try:
            o = self.apply(*leaves, causal)
            if backward:
                self.torch.autograd.grad(o, leaves, self.torch.ones_like(o))
        except Exception:
            pass

    def bits(self, tensor: Tensor) -> Tensor:
        return tensor.detach().contiguous().reshape(-1).view(self.torch.uint8)

    @contextlib.contextmanager
    def kept(self, tensors: Sequence[Tensor], what: str, finding: str = "kept_state") -> Iterator[None]:
        """Tensors that nobody may write into as long as this lasts; `what` is said of one who does."""
        before = [(tensor, self.bits(tensor).clone()) for tensor in tensors]
        yield
        if not all(self.torch.equal(self.bits(tensor), content) for tensor, content in before):
            raise WrongAnswer(what, finding)

    def output_kept(self, options: dict[str, Any], *outputs: Tensor) -> contextlib.AbstractContextManager[None]:
        """What forward returned, during a backward pass that is judged and not timed."""
        return self.kept(outputs if options.get("guarded") else (), "backward wrote over the output of forward, which "
                         "the model has and may use again", "input_changed")

    def other_calls(self, options: dict[str, Any], tensors: Sequence[Tensor], causal: bool, backward: bool) -> None:
        """Of the same shape and mask, whose memory a class may have kept for the next; and of those that are asked
        for, whose forward pass is always the last."""
        self.another_call(tensors, (tensors[0].shape[-2], tensors[1].shape[-2], tensors[0].shape[-1], causal), backward)
        asked = [options[f"interleaved_{name}"] for name in ("queries", "keys", "width", "causal")]
        if backward:
            self.another_call(tensors, (*asked[:3], bool(asked[3])), True)
        self.another_call(tensors, (*asked[:3], bool(asked[3])), False)

    def interleave(self, options: dict[str, Any], o: Tensor, tensors: Sequence[Tensor], causal: bool,
                   backward: bool) -> None:
        """The next layer's forward pass, if it is asked for, or both of its passes: what the first returned, and has
        saved, is the model's until backward."""
        if not options.get("interleaved"):
            return

        saved = [tensor for tensor in getattr(o.grad_fn, "saved_tensors", ()) if tensor is not None]
        with self.kept((o, *saved), "a forward pass of other values wrote over what the one before had returned or "
                       "saved: each needs memory of its own, since a model keeps what every layer returned until its "
                       "backward pass"):
            self.other_calls(options, tensors, causal, False)
        if backward:
            with self.kept((o, *saved), "a backward pass of other values wrote over what a forward pass had returned "
                           "or saved: each needs memory of its own, since a model keeps what every layer returned "
                           "until its own backward pass"):
                self.other_calls(options, tensors, causal, True)

    def interleave_backward(self, options: dict[str, Any], gradients: Sequence[Tensor], tensors: Sequence[Tensor],
                            causal: bool) -> None:
        """The same of what a backward pass returned: autograd adds it to what other layers return later."""
        if not options.get("interleaved"):
            return
        with self.kept(gradients, "a backward pass of other values wrote over the gradients that the one before had "
                       "returned: each needs memory of its own, since autograd keeps them until it has added what "
                       "other layers return"):
            self.other_calls(options, tensors, causal, True)

    def attention_forward(self, inputs: Arrays, options: dict[str, Any], timed: Timed, bell: Bell) -> Arrays:
        t, causal = attention_arguments(inputs, options, bell)
        q, k, v = self.leaves_of(t, options)
        with grouped_heads(inputs):
            o = timed(lambda: self.apply(q, k, v, causal), (q, k, v))
            self.interleave(options, o, (q, k, v), causal, False)
            expect_shape("o", o, q.shape)
            out = o
            if options.get("gradient") == "none":
                with self.torch.no_grad():
                    out = expect_shape("o", self.apply(t["q"], t["k"], t["v"], causal), q.shape)
            saved = [s for s in o.grad_fn.saved_tensors if tuple(s.shape) == tuple(q.shape[:-1])]
            if len(saved) != 1:
                raise ValueError("expected exactly one saved tensor of shape (batch, n_queries) = "
                                 f"{tuple(q.shape[:-1])}, the log-sum-exp; ctx.save_for_backward kept {len(saved)} of "
                                 "them")
        return {"out": out, "lse": saved[0]}

    def attention_backward(self, inputs: Arrays, options: dict[str, Any], timed: Timed, bell: Bell) -> Arrays:
        self.need_backward()
        t, causal = attention_arguments(inputs, options, bell)
        bell.early(("q", "k", "v"))
        q, k, v = self.leaves_of(t, options)
        with grouped_heads(inputs):
            if options.get("gradient") == "frozen":
                found = timed(lambda: self.one_by_one(options, (q, k, v), causal, t["dout"]), (t["dout"],))
                return results(("dq", "dk", "dv"), found)
            o = self.apply(q, k, v, causal)
            self.interleave(options, o, (q, k, v), causal, True)
            with self.output_kept(options, o):
                gradients = timed(lambda: self.way_back(options, o, (q, k, v), t["dout"]), (t["dout"],))
            self.interleave_backward(options, gradients, (q, k, v), causal)
        return results(("dq", "dk", "dv"), gradients)

    def one_by_one(self, options: dict[str, Any], leaves: tuple[Tensor, ...], causal: bool,
                   dout: Tensor) -> tuple[Tensor, ...]:
        """Gradients of a model that is partly frozen: of q with k and v that want none, and the other way round."""
        q, k, v = leaves
        of_query, of_keys = self.apply(q, k.detach(), v.detach(), causal), self.apply(q.detach(), k, v, causal)
        with self.output_kept(options, of_query, of_keys):
            return (*self.torch.autograd.grad(of_query, (q,), dout), *self.torch.autograd.grad(of_keys, (k, v), dout))

    def way_back(self, options: dict[str, Any], o: Tensor, leaves: tuple[Tensor, ...],
                 dout: Tensor) -> tuple[Tensor, ...]:
        """By the gradient that is given, or by one that lies as models make it: expanded from a sum, or transposed
        behind joined heads; and a second time, after another gradient, over a graph that was kept."""
        layout = options.get("gradient")
        if layout == "same":
            return self.torch.autograd.grad(o, leaves[:1], dout) * 3
        if layout == "kept":
            first = self.torch.autograd.grad(o, leaves, dout.flip(-1), retain_graph=True)
            with self.kept(first, "a second backward pass over a kept graph wrote over the gradients that the first "
                           "had returned: each needs memory of its own"):
                return self.torch.autograd.grad(o, leaves, dout)
        if layout == "expanded":
            return self.torch.autograd.grad(o.sum(), leaves)
        if layout == "transposed":
            dout = dout.transpose(1, 2).contiguous().transpose(1, 2)
        return self.torch.autograd.grad(o, leaves, dout)

    def weighted_sum_forward(self, inputs: Arrays, _options: dict[str, Any], timed: Timed, bell: Bell) -> Arrays:
        x, w = self.leaves(inputs["x"], inputs["w"])
        return {"y": expect_shape("y", timed(lambda: self.apply(x, w), (x, w)), x.shape[:-1])}

    def weighted_sum_backward(self, inputs: Arrays, _options: dict[str, Any], timed: Timed, bell: Bell) -> Arrays:
        self.need_backward()
        bell.early(("x", "w"))
        x, w = self.leaves(inputs["x"], inputs["w"])
        y = self.apply(x, w)
        gradients = timed(lambda: self.torch.autograd.grad(y, (x, w), inputs["dy"]), (inputs["dy"],))
        return results(("dx", "dw"), gradients)
