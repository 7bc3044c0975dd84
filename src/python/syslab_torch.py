"""FlashAttention-2 of libsyslab as a torch.autograd.Function.

    from syslab_torch import FlashAttention
    o = FlashAttention.apply(q, k, v, True)        # (batch, n, d) or (batch, heads, n, d); True: causal
    o.backward(do)
    o = FlashAttention.apply(q, k, v, True, "flash_mma")   # by this implementation, not the library's choice
    choice(q, k, v, True)                          # ("flash_wgmma", "Hopper's own instructions, and work for …")

L (the log-sum-exp of each row), Q, K, V and O are saved for the backward pass, so o.grad_fn.saved_tensors holds exactly
one tensor of shape (batch, n_queries). fp32, fp16 and bf16; any strides; fewer key/value heads than query heads are
allowed if they divide them. On the CPU or on a GPU, where work is queued on torch's current stream and nothing waits.
Tensors go to the library as they lie in memory, without a copy, unless their last dimension is strided. Under
torch.autocast they are cast to its dtype, as for scaled_dot_product_attention.

From torch 2.10 on, the library registers its calls as operators of torch's dispatcher (torch.ops.syslab): a call costs
some microseconds, and torch.compile takes it into its graphs. On a GPU the derivative of (batch, heads, n, d) is C++,
too, and o.grad_fn one of torch's own nodes, without saved_tensors. With other versions, and with
SYSLAB_TORCH_CALLS=ctypes, calls go through ctypes, which costs two to five times as much; a warning says so, and
WHY_CTYPES why.

The library is, in this order: $SYSLAB_LIBRARY; build/src/capi/libsyslab.so of the checkout that this file stands in;
the one that was installed or bundled with this file; the one that the system's loader finds. Needs torch 1.13 or newer
and nothing else.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Gradients = tuple[torch.Tensor, torch.Tensor, torch.Tensor, None, None]

ABI = 1
CPU, CUDA = 1, 2  # DLPack's device types
FLOAT, BFLOAT = 2, 4  # and type codes
TYPES = {torch.float32: (FLOAT, 32), torch.float16: (FLOAT, 16), torch.bfloat16: (BFLOAT, 16)}


class DLTensor(ctypes.Structure):
    """dlpack.h's DLTensor: DLDevice and DLDataType are written out."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Options(ctypes.Structure):
    """syslab.h's syslab_attention_options."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("scale", ctypes.c_float),
        ("causal", ctypes.c_int32),
        ("deterministic", ctypes.c_int32),
        ("implementation", ctypes.c_char_p),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
    ]


def candidates() -> Iterator[tuple[str, str]]:
    """Where the library may be: (path, why there)."""
    if "SYSLAB_LIBRARY" in os.environ:
        yield os.environ["SYSLAB_LIBRARY"], "SYSLAB_LIBRARY"
        return  # who names a library wants that one or an error
    checkout = pathlib.Path(__file__).resolve().parents[2]
    built = checkout / "build" / "src" / "capi" / "libsyslab.so"
    if built.exists():
        yield str(built), "the checkout's build"
    # Installed as PREFIX/share/syslab/python, or part of a bundle.
    here = pathlib.Path(__file__).resolve().parent
    prefix = here.parent.parent.parent
    for folder in (prefix / "lib", prefix / "lib64", here.parent / "lib"):
        for found in sorted([*folder.glob("libsyslab.so.0"), *folder.glob("*-linux-gnu/libsyslab.so.0")]):
            yield str(found), "beside this file"
    yield "libsyslab.so.0", "the system"


def load_library() -> ctypes.CDLL:
    refusals = []
    for path, why in candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            refusals.append(f"  {path} ({why}): {error}")
            continue
        found = library.syslab_plugin_abi()
        if found != ABI:
            raise ImportError(f"{path} ({why}) speaks ABI {found}, syslab_torch.py speaks {ABI}: take both from one "
                              "version")
        library.syslab_last_error.restype = library.syslab_torch_operators.restype = ctypes.c_char_p
        tensor, options = ctypes.POINTER(DLTensor), ctypes.POINTER(Options)
        library.syslab_attention_forward.argtypes = [tensor] * 5 + [options, ctypes.c_void_p]
        library.syslab_attention_backward.argtypes = [tensor] * 9 + [options, ctypes.c_void_p]
        return library
    raise ImportError("libsyslab.so was not found; build it (ninja -C build) or name it in SYSLAB_LIBRARY:\n"
                      + "\n".join(refusals))


LIBRARY = load_library()


def as_dlpack(tensor: torch.Tensor) -> DLTensor:
    """A DLTensor over the tensor's memory. It keeps its own shape and strides; the tensor must outlive the call."""
    if tensor.dtype not in TYPES:
        raise TypeError(f"attention takes float32, float16 and bfloat16, not {tensor.dtype}")
    if tensor.device.type not in ("cpu", "cuda"):
        raise TypeError(f"attention takes tensors on the CPU or a CUDA device, not on {tensor.device}")
    sizes = ctypes.c_int64 * tensor.dim()
    view = DLTensor(data=tensor.data_ptr(), ndim=tensor.dim(), type_lanes=1, byte_offset=0)
    view.type_code, view.type_bits = TYPES[tensor.dtype]
    view.device_type = CUDA if tensor.device.type == "cuda" else CPU
    view.device_id = tensor.device.index or 0
    view.shape = sizes(*tensor.shape)
    view.strides = sizes(*tensor.stride())
    return view


def call(function: str, tensors: Sequence[torch.Tensor], is_causal: bool, implementation: str | None = None) -> None:
    """Calls the library on the current stream; what it refuses becomes the exception that fits."""
    options = Options(struct_size=ctypes.sizeof(Options), causal=1 if is_causal else 0)
    options.implementation = implementation.encode() if implementation else None
    stream = torch.cuda.current_stream(tensors[0].device).cuda_stream if tensors[0].is_cuda else None
    status = getattr(LIBRARY, function)(*[ctypes.byref(as_dlpack(t)) for t in tensors], ctypes.byref(options), stream)
    if status != 0:
        kind = {1: ValueError, 2: MemoryError}.get(status, RuntimeError)
        raise kind(LIBRARY.syslab_last_error().decode())


def choice(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False, backward: bool = False,
           implementation: str | None = None) -> tuple[str, str]:
    """(name, why): the implementation that FlashAttention.apply takes for such tensors, and the reason that the
    library's rule gives for it. Reads none of their data."""
    options = Options(struct_size=ctypes.sizeof(Options), causal=1 if is_causal else 0)
    options.implementation = implementation.encode() if implementation else None
    name, why = ctypes.c_char_p(), ctypes.c_char_p()
    views = [ctypes.byref(as_dlpack(unit_last_stride(t.detach()))) for t in (q, k, v)]
    if LIBRARY.syslab_attention_choice(*views, int(backward), ctypes.byref(options), ctypes.byref(name),
                                       ctypes.byref(why)) != 0:
        raise ValueError(LIBRARY.syslab_last_error().decode())
    assert name.value is not None and why.value is not None  # as the call succeeded
    return name.value.decode(), why.value.decode()


def unit_last_stride(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, copied only if the elements of a row do not lie side by side, or memory holds them with the sign
    turned (torch's negative views)."""
    tensor = tensor.resolve_neg()
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


def require_alike(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """What is wrong with the tensors in torch's words."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dim() not in (3, 4) or tensor.dim() != q.dim():
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; q, k and v are all (batch, n, d) or all (batch, "
                             "heads, n, d)")
        if tensor.device != q.device:
            raise ValueError(f"{name} is on {tensor.device}, q on {q.device}")
        if tensor.dtype not in TYPES:
            raise TypeError(f"attention takes float32, float16 and bfloat16, not {tensor.dtype}")


def forward_by_ctypes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool,
                      implementation: str) -> tuple[torch.Tensor, torch.Tensor]:
    require_alike(q, k, v)
    q, k, v = unit_last_stride(q), unit_last_stride(k), unit_last_stride(v)
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
    call("syslab_attention_forward", (q, k, v, o, lse), is_causal, implementation)
    return o, lse


def backward_by_ctypes(do: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
                       lse: torch.Tensor, is_causal: bool,
                       implementation: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    do, q, k, v = unit_last_stride(do), unit_last_stride(q), unit_last_stride(k), unit_last_stride(v)
    dq, dk, dv = (torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in (q, k, v))
    call("syslab_attention_backward", (q, k, v, o, lse, do, dq, dk, dv), is_causal, implementation)
    return dq, dk, dv


def shape_of_forward(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool,
                     implementation: str) -> tuple[torch.Tensor, torch.Tensor]:
    return q.new_empty(q.shape), q.new_empty(q.shape[:-1], dtype=torch.float32)


def shape_of_backward(do: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor,
                      lse: torch.Tensor, is_causal: bool,
                      implementation: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def register_operators() -> str:
    """Why calls go through ctypes; "" if they go through torch's dispatcher."""
    if os.environ.get("SYSLAB_TORCH_CALLS") == "ctypes":
        return "SYSLAB_TORCH_CALLS=ctypes asks for it"
    why = LIBRARY.syslab_torch_operators().decode()
    if not why:
        try:
            torch.library.register_fake("syslab::attention_forward", shape_of_forward)
            torch.library.register_fake("syslab::attention_backward", shape_of_backward)
        except RuntimeError as error:
            if "already" not in str(error):  # this file was loaded under another name, too
                raise
    elif torch.cuda.is_available():  # elsewhere microseconds do not matter
        warnings.warn(f"syslab calls go through ctypes with torch {torch.__version__}: {why}", stacklevel=3)
    return why


WHY_CTYPES = register_operators()


# What the library's kernels read from each place (src/capi/torch/operators.cpp).
NODE_ARGUMENTS = {
    "_scaled_dot_product_flash_attention_for_cpu": "query key value dropout_p is_causal attn_mask scale",
    "_scaled_dot_product_flash_attention_for_cpu_backward": "grad_out query key value out logsumexp dropout_p "
    "is_causal attn_mask scale"}


def node_of_torch() -> Any:
    """Attention of CUDA tensors whose derivative is C++, too (src/capi/torch/operators.hpp); None where this torch's
    operators of that name take other arguments than the library's kernels, or in another order."""
    for name, arguments in NODE_ARGUMENTS.items():
        operator = getattr(torch.ops.aten, name, None)
        if operator is None or [each.name for each in operator.default._schema.arguments] != arguments.split():
            return None
    return getattr(torch.ops.aten, next(iter(NODE_ARGUMENTS))).default


NODE: Any = None
if WHY_CTYPES:
    FORWARD, BACKWARD = forward_by_ctypes, backward_by_ctypes
else:
    NODE = node_of_torch()
    OPERATOR, BACKWARD = torch.ops.syslab.attention_forward.default, torch.ops.syslab.attention_backward.default

    def FORWARD(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool,
                implementation: str) -> tuple[torch.Tensor, torch.Tensor]:
        try:
            return OPERATOR(q, k, v, is_causal, implementation)
        except (RuntimeError, ValueError):
            require_alike(q, k, v)
            raise


if hasattr(torch, "get_autocast_dtype"):
    def autocast_dtype(device_type: str) -> torch.dtype | None:
        """What torch.autocast casts to there; None outside of it."""
        return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else None
else:  # before torch 2.4
    def autocast_dtype(device_type: str) -> torch.dtype | None:
        if device_type == "cuda":
            return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None


class Attention(torch.autograd.Function):
    """FlashAttention below without the way around autograd: torch.compile knows `apply` of a Function as it is."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool,
                implementation: str) -> torch.Tensor:
        ctx.cast_from = None
        dtype = autocast_dtype(q.device.type)
        if dtype is not None and dtype in TYPES and q.dtype in TYPES:
            ctx.cast_from = (q.dtype, k.dtype, v.dtype)
            q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
        o, lse = FORWARD(q, k, v, is_causal, implementation)
        ctx.save_for_backward(lse, q, k, v, o)
        ctx.is_causal, ctx.implementation = is_causal, implementation
        return o

    @staticmethod
    def backward(ctx: Any, do: torch.Tensor) -> Gradients:
        # once_differentiable costs microseconds, and matters only where a gradient of the gradients is wanted.
        return gradients_once(ctx, do) if torch.is_grad_enabled() else gradients(ctx, do)


def gradients(ctx: Any, do: torch.Tensor) -> Gradients:
    lse, q, k, v, o = ctx.saved_tensors
    dq, dk, dv = BACKWARD(do, q, k, v, o, lse, ctx.is_causal, ctx.implementation)
    if ctx.cast_from is not None:
        dq, dk, dv = (t.to(dtype) for t, dtype in zip((dq, dk, dv), ctx.cast_from))
    return dq, dk, dv, None, None


gradients_once = once_differentiable(gradients)


def attend_by_node(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool) -> torch.Tensor:
    try:
        return NODE(q, k, v, 0.0, is_causal)[0]
    except (RuntimeError, ValueError):
        require_alike(q, k, v)
        raise


class FlashAttention(Attention):
    """FlashAttention.apply(q, k, v, is_causal=False, implementation=None) -> o. Causal: query i sees keys 0 … i.
    Without a name the library chooses."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False,
                implementation: str | None = None) -> torch.Tensor:
        return Attention.forward(ctx, q, k, v, is_causal, implementation or "")

    @classmethod
    def apply(cls, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool = False,
              implementation: str | None = None) -> torch.Tensor:
        if torch.is_grad_enabled() or autocast_dtype(q.device.type) is not None:
            if (NODE is not None and q.is_cuda and not implementation and q.dim() == 4
                and not torch.compiler.is_compiling()
                    and autocast_dtype("cuda") is None):
                return attend_by_node(q, k, v, is_causal)
            return Attention.apply(q, k, v, is_causal, implementation or "")
        return FORWARD(q, k, v, is_causal, implementation or "")[0]  # nobody will ask for a gradient
