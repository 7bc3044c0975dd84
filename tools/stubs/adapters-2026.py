"""What the hand-out of 2026 asks of you, as functions that `syslab check` and the official tests call.

Write your answers in files of their own, import them here, and return them. A function that still raises
NotImplementedError counts as not answered.
"""


def get_flashattention_autograd_function_pytorch():
    """Your FlashAttention-2 of plain PyTorch: a subclass of torch.autograd.Function, not an instance.

    apply(Q, K, V, is_causal) takes fp32 tensors (B, S, D) and returns O (B, S, D); forward() saves the logsumexp
    L (B, S) with what backward() needs.
    """
    raise NotImplementedError


def get_flashattention_autograd_function_triton():
    """The same with kernels of yours, on a GPU."""
    raise NotImplementedError


def get_ddp(module):
    """A container around `module` whose forward() is the module's and whose ranks end each step with the same
    weights."""
    raise NotImplementedError


def ddp_on_after_backward(ddp_model, optimizer):
    """Called after backward() and before optimizer.step(): what must be waited for is waited for here."""
    raise NotImplementedError


def get_fsdp(module, compute_dtype=None):
    """A container in which each rank keeps its part of the weights of every linear and embedding layer."""
    raise NotImplementedError


def fsdp_on_after_backward(fsdp_model, optimizer):
    """Called after backward() and before optimizer.step()."""
    raise NotImplementedError


def fsdp_gather_full_params(fsdp_model):
    """All parameters whole, on every rank: {name in the module that was wrapped: tensor}."""
    raise NotImplementedError


def get_sharded_optimizer(params, optimizer_cls, **kwargs):
    """An optimizer of class `optimizer_cls` whose state is divided among the ranks."""
    raise NotImplementedError
