"""What the hand-out of 2025 asks of you, as functions that `syslab check` and the official tests call.

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


def get_ddp_individual_parameters(module):
    """A container around `module` that averages each parameter's gradient as soon as backward() has made it."""
    raise NotImplementedError


def ddp_individual_parameters_on_after_backward(ddp_model, optimizer):
    """Called after backward() and before optimizer.step(): what must be waited for is waited for here."""
    raise NotImplementedError


def get_ddp_bucketed(module, bucket_size_mb):
    """A container that averages gradients in buckets of at most `bucket_size_mb` MB; None: all in one."""
    raise NotImplementedError


def ddp_bucketed_on_after_backward(ddp_model, optimizer):
    """Called after backward() and before optimizer.step()."""
    raise NotImplementedError


def ddp_bucketed_on_train_batch_start(ddp_model, optimizer):
    """Called at the very start of each step."""
    raise NotImplementedError


def get_sharded_optimizer(params, optimizer_cls, **kwargs):
    """An optimizer of class `optimizer_cls` whose state is divided among the ranks."""
    raise NotImplementedError
