"""The adapters of 2026, filled with syslab's own."""
from syslab_parallel import FSDP, IndividualDDP, ShardedOptimizer
from syslab_torch import FlashAttention


def get_flashattention_autograd_function_pytorch():
    return FlashAttention


def get_flashattention_autograd_function_triton():
    return FlashAttention


def get_ddp(module):
    return IndividualDDP(module)


def ddp_on_after_backward(ddp_model, optimizer):
    ddp_model.finish_gradient_synchronization()


def get_fsdp(module, compute_dtype=None):
    return FSDP(module, compute_dtype)


def fsdp_on_after_backward(fsdp_model, optimizer):
    fsdp_model.finish_gradient_synchronization()


def fsdp_gather_full_params(fsdp_model):
    return fsdp_model.gather_full_params()


def get_sharded_optimizer(params, optimizer_cls, **kwargs):
    return ShardedOptimizer(params, optimizer_cls, **kwargs)
