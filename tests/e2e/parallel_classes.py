"""Which class of tests/worker/mine/parallel*.py is for which experiment, and which laws may find a fault. For test_parallel.py and
tools/long/parallel_faults.py."""
import collections.abc

RIGHT = {
    "Naive": "naive_ddp",
    "Flat": "minimal_ddp_flat_benchmarking",
    "Individual": "ddp_overlap_individual_parameters",
    "DividesFirst": "ddp_overlap_individual_parameters",
    "Bucketed": "ddp_overlap_bucketed",
    "Sharded": "optimizer_state_sharding",
    "FullySharded": "fsdp",
}

# Right in ways that checks might not expect, of parallel_variants.py.
VARIANTS = {
    "GathersGradients": "naive_ddp",
    "ReducesOnOne": "naive_ddp",
    "ScattersBuckets": "ddp_overlap_bucketed",
    "PaddedShards": "optimizer_state_sharding",
    "RoundRobin": "optimizer_state_sharding",
    "FlatFSDP": "fsdp",
    "ThenDivides": "naive_ddp",
    "TakesResults": "naive_ddp",
    "ByGroup": "naive_ddp",
    "Coalesced": "minimal_ddp_flat_benchmarking",
    "Ring": "naive_ddp",
    "AgreesByBits": "naive_ddp",
    "DrawsNumbers": "naive_ddp",
    "Recomputes": "naive_ddp",
}

# Right ones of parallel_hidden.py, which keep memory of their own.
BUFFERS = {
    "FlatBuffers": "optimizer_state_sharding",
    "KeepsPart": "fsdp",
}
VARIANTS.update(BUFFERS)

# syslab's own for torch, of ours.py. A plan has other buckets than any of these experiments promises: ddp.messages is not its law.
OURS = {
    "IndividualDDP": ("naive_ddp", "ddp_overlap_individual_parameters"),
    "FlatDDP": ("minimal_ddp_flat_benchmarking",),
    "BucketedDDP": ("ddp_overlap_bucketed",),
    "PlannedAtOnce": ("naive_ddp",),
    "ShardedOptimizer": ("optimizer_state_sharding",),
    "FSDP": ("fsdp",),
    "NativeFSDP": ("fsdp",),
}

# The law that should name the fault; others may find it, too.
FAULTS = {
    "AverageForgotten": ("naive_ddp", "ddp.equals_one_process"),
    "DividedTwice": ("naive_ddp", "ddp.equals_one_process"),
    "BroadcastForgotten": ("naive_ddp", "ddp.shares_parameters"),
    "FrozenNotShared": ("naive_ddp", "ddp.shares_parameters"),
    "BuffersNotShared": ("naive_ddp", "ddp.shares_buffers"),
    "NoGradientForgotten": ("naive_ddp", "ddp.unused_parameters"),
    "OneRankMissing": ("naive_ddp", "ddp.equals_one_process"),
    "CopyBackForgotten": ("minimal_ddp_flat_benchmarking", "ddp.equals_one_process"),
    "ShiftedByOne": ("minimal_ddp_flat_benchmarking", "ddp.equals_one_process"),
    "NoWait": ("ddp_overlap_individual_parameters", "ddp.waits"),
    "DividedBeforeWait": ("ddp_overlap_individual_parameters", "ddp.waits"),
    "WaitsForTheLast": ("ddp_overlap_individual_parameters", "ddp.waits"),
    "TiedReducedTwice": ("ddp_overlap_individual_parameters", "ddp.tied_weights"),
    "NoOverlap": ("ddp_overlap_individual_parameters", "ddp.overlaps"),
    "LastBucketLost": ("ddp_overlap_bucketed", "ddp.equals_one_process"),
    "OrderOfRegistration": ("ddp_overlap_bucketed", "ddp.equals_one_process"),
    "CountsNotReset": ("ddp_overlap_bucketed", "ddp.equals_one_process"),
    "LimitInBits": ("ddp_overlap_bucketed", "ddp.messages"),
    "StaleAfterStep": ("optimizer_state_sharding", "sharded.equals_one_process"),
    "ShardBoundary": ("optimizer_state_sharding", "sharded.equals_one_process"),
    "NotSharded": ("optimizer_state_sharding", "sharded.state_once"),
    "NoWaitForWeights": ("optimizer_state_sharding", "sharded.waits"),
    "SecondGroupForgotten": ("optimizer_state_sharding", "sharded.groups"),
    "ShardsNotAveraged": ("fsdp", "fsdp.equals_one_process"),
    "PaddingForgotten": ("fsdp", "fsdp.uneven_rows"),
    "NeverFreed": ("fsdp", "fsdp.holds_parts"),
    "NormsNotReduced": ("fsdp", "fsdp.waits"),
    "RoundsGradients": ("naive_ddp", "ddp.real_numbers"),
    "DropsCopies": ("naive_ddp", "ddp.strided_parameters"),
    "RateNotPassedOn": ("optimizer_state_sharding", "sharded.learning_rate"),
    "StopsAtEmpty": ("optimizer_state_sharding", "sharded.empty_parameters"),
    "ReducesInBf16": ("fsdp", "fsdp.real_numbers"),
    "Unties": ("fsdp", "fsdp.tied_weights"),
    "SkipsTheHandOutsLarge": ("naive_ddp", "ddp.equals_one_process"),
    "SkipsLarge": ("naive_ddp", "ddp.equals_one_process"),
    "SkipsKernels": ("naive_ddp", "ddp.equals_one_process"),
    "SkipsCubes": ("naive_ddp", "ddp.equals_one_process"),
    "SkipsScalars": ("naive_ddp", "ddp.equals_one_process"),
    "StopsReducing": ("naive_ddp", "ddp.equals_one_process"),
    "ReducesInFp32": ("naive_ddp", "ddp.mixed_dtypes"),
    "KeepsTheHandOutsLarge": ("optimizer_state_sharding", "sharded.equals_one_process"),
    "KeepsLargeWeights": ("optimizer_state_sharding", "sharded.equals_one_process"),
    "KeepsKernels": ("optimizer_state_sharding", "sharded.equals_one_process"),
    "StopsSending": ("optimizer_state_sharding", "sharded.equals_one_process"),
    "SendsInFp32": ("optimizer_state_sharding", "sharded.mixed_dtypes"),
    "LeavesLargeParts": ("fsdp", "fsdp.equals_one_process"),
}

# Of parallel_states.py.
STATES = {
    "Evals": ("naive_ddp", "ddp.equals_one_process"),
    "EvalsInStep": ("naive_ddp", "ddp.equals_one_process"),
    "ComputesInEval": ("naive_ddp", "ddp.equals_one_process"),
    "DiffersInEval": ("naive_ddp", "ddp.resumes"),
    "MovesRng": ("naive_ddp", "ddp.keeps_random_numbers"),
    "MovesRngInStep": ("naive_ddp", "ddp.keeps_random_numbers"),
    "RewindsRng": ("naive_ddp", "ddp.keeps_random_numbers"),
    "PutsBackTheModulesDraws": ("naive_ddp", "ddp.keeps_random_numbers"),
    "PutsBackLate": ("naive_ddp", "ddp.keeps_random_numbers"),
    "ForksAroundTheModule": ("naive_ddp", "ddp.keeps_random_numbers"),
    "SeedsForTheModule": ("naive_ddp", "ddp.keeps_random_numbers"),
    "RepeatsForTheModule": ("naive_ddp", "ddp.keeps_random_numbers"),
    "SharesRng": ("naive_ddp", "ddp.keeps_random_numbers"),
    "SeedsInStep": ("optimizer_state_sharding", "sharded.closure"),
    "PutsBackTheClosuresDraws": ("optimizer_state_sharding", "sharded.closure"),
}
FAULTS.update(STATES)

# Of parallel_arguments.py.
ARGUMENTS = {
    "DropsKeywords": ("naive_ddp", "ddp.equals_one_process"),
    "TakesNoKeywords": ("naive_ddp", "ddp.equals_one_process"),
    "FullyShardedDropsKeywords": ("fsdp", "fsdp.equals_one_process"),
    "DropsNesterov": ("optimizer_state_sharding", "sharded.equals_one_process"),
    "DropsDampening": ("optimizer_state_sharding", "sharded.equals_one_process"),
    "DropsMaximize": ("optimizer_state_sharding", "sharded.equals_one_process"),
    "DropsAmsgrad": ("optimizer_state_sharding", "sharded.adamw"),
    "DropsBetas": ("optimizer_state_sharding", "sharded.adamw"),
    "DropsEps": ("optimizer_state_sharding", "sharded.adamw"),
}
FAULTS.update(ARGUMENTS)


# Of parallel_hidden.py.
HIDDEN = {
    "HidesState": ("optimizer_state_sharding", "sharded.state_once"),
    "HidesStateFlat": ("optimizer_state_sharding", "sharded.state_shared"),
    "CachesWhole": ("fsdp", "fsdp.holds_parts"),
    "CachesPieces": ("fsdp", "fsdp.holds_parts"),
}
FAULTS.update(HIDDEN)

# Of parallel_waits.py.
WAITS = {
    "FrozenNoWait": ("naive_ddp", "ddp.shares_parameters"),
    "WideNoWait": ("naive_ddp", "ddp.mixed_dtypes"),
    "AsksOnce": ("ddp_overlap_individual_parameters", "ddp.waits"),
    "OneScratch": ("naive_ddp", "ddp.waits"),
    "SecondNoWait": ("optimizer_state_sharding", "sharded.groups"),
    "GathersFirst": ("minimal_ddp_flat_benchmarking", "ddp.messages"),
    "FirstBlocks": ("ddp_overlap_individual_parameters", "ddp.overlaps"),
    "CopyComputesInEval": ("naive_ddp", "ddp.equals_one_process"),
    "StaleAfterThree": ("naive_ddp", "ddp.real_numbers"),
    "KeepsFrozen": ("optimizer_state_sharding", "sharded.state_shared"),
    "KeepsSparse": ("optimizer_state_sharding", "sharded.state_shared"),
    "WholeUnderAdamW": ("optimizer_state_sharding", "sharded.state_once"),
    "ShardedInEval": ("fsdp", "fsdp.equals_one_process"),
    "ShardedSeeds": ("fsdp", "fsdp.keeps_random_numbers"),
    "KeepsInBf16": ("fsdp", "fsdp.bf16"),
}
FAULTS.update(WAITS)


def file_of(name):
    files: dict[str, collections.abc.Container[str]] = {
        "ours.py": OURS, "parallel.py": RIGHT, "parallel_hidden.py": [*BUFFERS, *HIDDEN],
        "parallel_variants.py": VARIANTS, "parallel_states.py": STATES,
        "parallel_arguments.py": ARGUMENTS, "parallel_waits.py": WAITS}
    return next((file for file, names in files.items() if name in names), "parallel_faults.py")
