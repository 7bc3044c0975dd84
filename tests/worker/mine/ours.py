"""syslab's own data parallelism for torch (src/python/syslab_parallel.py), as --mine takes it."""
import syslab_fsdp
from syslab_parallel import FSDP, BucketedDDP, FlatDDP, IndividualDDP, PlannedDDP, ShardedOptimizer  # noqa: F401


class PlannedAtOnce(PlannedDDP):
    """Plans behind the first step, since trainings of laws are short."""

    def __init__(self, module):
        super().__init__(module, measured_steps=1)


class NativeFSDP(FSDP):
    """With the collectives that NCCL's groups have and Gloo's have not."""

    def __init__(self, module, compute_dtype=None):
        syslab_fsdp.moves_natively = lambda: True
        super().__init__(module, compute_dtype)
