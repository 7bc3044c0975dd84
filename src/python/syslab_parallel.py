"""Data parallelism of syslab for torch: four ways of DDP, a sharded optimizer and FSDP.

    from syslab_parallel import FSDP, BucketedDDP, FlatDDP, IndividualDDP, PlannedDDP, ShardedOptimizer

    model = BucketedDDP(model, bucket_size_mb=25)          # or IndividualDDP, FlatDDP, PlannedDDP
    optimizer = ShardedOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
    loss(model(x)).backward()
    model.finish_gradient_synchronization()                # gradients are means over the ranks from here on
    optimizer.step()

    model = FSDP(model, compute_dtype=torch.bfloat16)      # parameters() are this rank's rows
    optimizer = torch.optim.AdamW(model.parameters())      # and so is the optimizer's state
    model.gather_full_params()                             # {name: whole weight}, on every rank

Buckets, plans, owners and rows are decided by libsyslab, by the code that trains syslab's own models; torch's process
group carries the bytes, so that CPU tensors go through Gloo and CUDA tensors through NCCL or Gloo:
torch.distributed.init_process_group comes first. Tensors must not move after a container is made: model.to(device)
comes first. Needs torch 1.13 or newer.

The adapters of both hand-outs are a line each: tests/worker/mine/ours_2025/adapters.py, ours_2026/adapters.py.
"""
from syslab_ddp import BucketedDDP, FlatDDP, IndividualDDP, PlannedDDP
from syslab_fsdp import FSDP
from syslab_sharded import ShardedOptimizer

__all__ = ["FSDP", "BucketedDDP", "FlatDDP", "IndividualDDP", "PlannedDDP", "ShardedOptimizer"]
