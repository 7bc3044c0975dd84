"""The adapters of 2025, filled with syslab's own."""
from syslab_parallel import BucketedDDP, IndividualDDP, ShardedOptimizer
from syslab_torch import FlashAttention


def get_flashattention_autograd_function_pytorch():
    return FlashAttention


def get_flashattention_autograd_function_triton():
    return FlashAttention


def get_ddp_individual_parameters(module):
    return IndividualDDP(module)


def ddp_individual_parameters_on_after_backward(ddp_model, optimizer):
    ddp_model.finish_gradient_synchronization()


def get_ddp_bucketed(module, bucket_size_mb):
    return BucketedDDP(module, bucket_size_mb)


def ddp_bucketed_on_after_backward(ddp_model, optimizer):
    ddp_model.finish_gradient_synchronization()


def ddp_bucketed_on_train_batch_start(ddp_model, optimizer):
    pass


def get_sharded_optimizer(params, optimizer_cls, **kwargs):
    return ShardedOptimizer(params, optimizer_cls, **kwargs)
