"""What tools/gpu_rows measures, in the order of how much it is wanted. A part is one command of syslab, or of PyTorch's
side."""
import dataclasses

SIZES = (2, 4, 6, 8)
ROWS = 4  # of the batch, a rank
MODEL = ("-a", "context=512", "-a", "precision=bf16_amp", "--impl", "fused")


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    what: str
    arguments: tuple  # of `syslab run`; with PyTorch, of tools/peers/data_parallel.py
    seconds: float    # that a case is assumed to take
    pytorch: bool = False
    timeout: str = "2m"  # of a case

    @property
    def experiment(self):
        return self.arguments[0]


def values(axis, of):
    return ("-a", f"{axis}=" + ",".join(map(str, of)))


def gpu_parts(sizes, gpus):
    """Of all these world sizes, those beyond `gpus`, too: their rows say what they need. PyTorch's would only fail."""
    megabyte, most_first = 10**6, sorted(sizes, reverse=True)
    collective = "distributed_communication_single_node"
    whole = values("bytes", (megabyte, 10 * megabyte, 100 * megabyte, 1000 * megabyte))
    among = values("world_size", sizes)
    parts = [Part("all_reduce", "all-reduce, 1 MB to 1 GB, NCCL beside NCCL itself and beside copy engines",
                  (collective, *values("operation", ["all_reduce"]), *whole, *among, "--impl",
                   "nccl,nccl_raw,copy_engines"), 2.5)]

    def steps(model, ranks, strategies):
        return Part(f"ddp-{model}-{ranks}", f"strategies of data parallelism, {model} on {ranks}",
                    ("ddp_bucketed_benchmarking", *values("model", [model]), *values("batch", [ROWS * ranks]),
                     *values("world_size", [ranks]), *values("strategy", strategies), *values("bucket_mb", (0, 25)),
                     *MODEL), 7)

    def copied(model, ranks):
        return Part(f"copies-{model}-{ranks}", f"planned data parallelism carried by copy engines, {model} on {ranks}",
                    ("ddp_bucketed_benchmarking", *values("model", [model]), *values("batch", [ROWS * ranks]),
                     *values("world_size", [ranks]), *values("strategy", ["none", "planned"]),
                     *values("bucket_mb", [0]),
                     *values("backend", ["copy_engines"]), *MODEL), 8)

    def rounded(model, ranks):
        backends = ("auto", "copy_engines") if ranks == 2 else ("auto",)
        return Part(f"bf16-{model}-{ranks}",
                    f"planned data parallelism, gradients travelling in bf16, {model} on {ranks}",
                    ("ddp_bucketed_benchmarking", *values("model", [model]), *values("batch", [ROWS * ranks]),
                     *values("world_size", [ranks]), *values("strategy", ["none", "planned"]),
                     *values("bucket_mb", [0]),
                     *values("wire", ["bf16"]), *values("backend", backends), *MODEL), 8)

    def scattered(model, ranks):
        """Where weak scaling is best: each rank updates its slices under the backward pass, and copies are gathered."""
        backends = ("auto", "copy_engines") if ranks == 2 else ("auto",)
        return Part(f"scattered-{model}-{ranks}", "slices updated in turn, gradients travelling as they lie and in "
                    f"bf16, {model} on {ranks}",
                    ("optimizer_state_sharding_accounting", *values("model", [model]), *values("batch", [ROWS * ranks]),
                     *values("world_size", [ranks]), *values("sharding", ["zero1", "zero2"]),
                     *values("updates", ["in_turn"]), *values("bucket_mb", [400]),
                     *values("wire", ["own", "bf16"]), *values("backend", backends), *MODEL), 7)

    def sharded(model, ranks, shardings, seconds, *more, timeout="2m"):
        return Part(f"state-{model}-{ranks}", f"the optimizer's state divided, {model} on {ranks}",
                    ("optimizer_state_sharding_accounting", *values("model", [model]), *values("batch", [ROWS * ranks]),
                     *values("world_size", [ranks]), *values("sharding", shardings), *MODEL, *more), seconds,
                    timeout=timeout)

    def fsdp(model, ranks, seconds, *more, timeout="2m"):
        return Part(f"fsdp-{model}-{ranks}", f"full sharding, {model} on {ranks}",
                    ("fsdp_accounting", *values("model", [model]), *values("batch", [ROWS * ranks]),
                     *values("world_size", [ranks]), *MODEL, *more), seconds, timeout=timeout)

    def crossing(layout, ranks):
        """Around where the formula has it at 650 TFLOP/s and 300 GB/s: 2167 (N − 1) tokens, 1444 (N − 1) hidden
        numbers."""
        tokens, hidden = ([256 * ranks << power for power in range(5)], [8192]) if layout == "fsdp" else (
            [16384], [256 * ranks << power for power in range(5)])
        return Part(f"crossing-{layout}-{ranks}", "where communicating a layer takes as long as computing it, "
                    f"{layout} on {ranks}",
                    ("layer_crossover", *values("layout", [layout]), *values("tokens", tokens),
                     *values("d_model", [4096]),
                     *values("d_ff", hidden), *values("world_size", [ranks]), "--impl", "nccl"), 4)

    ladder = ("none", "naive", "flat_view", "overlap", "bucketed", "planned")
    beside = [ranks for ranks in most_first if ranks <= gpus]
    parts += [part for ranks in most_first
              for part in (steps("xl26", ranks, ladder), copied("xl26", ranks), rounded("xl26", ranks),
                           scattered("xl26", ranks))]
    parts += [steps("xl26", 1, ["none"])]
    parts += [part for ranks in most_first
              for part in (sharded("xl26", ranks, ("none", "optimizer", "zero1", "zero2"), 7), fsdp("xl26", ranks, 7))]
    # PyTorch's side of what stands above, on the same machine in the same hour.
    sizes_of = ",".join(str(megabyte * 10**exponent) for exponent in range(4))
    parts += [Part(f"pytorch-collectives-{ranks}", f"PyTorch's all-reduce on {ranks}",
                   ("collectives", "--ranks", str(ranks), "--bytes", sizes_of), 30, True) for ranks in beside]
    parts += [Part(f"pytorch-steps-{ranks}", f"PyTorch's steps of xl26 on {ranks}",
                   ("steps", "--ranks", str(ranks), "--models", "xl26", "--contexts", "512", "--batch",
                    str(ROWS * ranks),
                    "--variants", "none,naive,ddp_25,zero,fsdp"), 75, True) for ranks in beside]
    parts += [crossing(layout, ranks) for ranks in most_first if ranks <= 4 for layout in ("fsdp", "tensor")]
    # That no GPU holds the whole model is the point: the forecast of memory is of one.
    parts += [part for ranks in most_first
              for part in (sharded("10B", ranks, ["zero1"], 45, "--try-oom", timeout="4m"),
                           fsdp("10B", ranks, 45, "--try-oom", timeout="4m"))]
    parts += [Part("leaderboard-2026-2", "the 8B model's whole step on 2",
                   ("leaderboard_2026", *values("world_size", [2]), "--impl", "fsdp"), 120, timeout="5m")]
    parts += [part for ranks in most_first for part in (steps("xl25", ranks, ladder), copied("xl25", ranks))]
    parts += [steps("xl25", 1, ["none"])]
    others = values("operation", ("reduce_scatter", "all_gather", "broadcast"))
    parts += [Part("others", "reduce-scatter, all-gather and broadcast, 1 MB to 1 GB",
                   (collective, *others, *whole, *among, "--impl", "nccl"), 5),
              Part("rings", "a ring that forwards whole tensors beside the usual one, ranks of the CPU",
                   ("alternate_ring_all_reduce", *values("bytes", (1 << 20, 16 << 20)), *among), 5),
              Part("host", "all-reduce of ranks of the CPU, 1 MB to 100 MB",
                   (collective, *values("bytes", (megabyte, 10 * megabyte, 100 * megabyte)), *among, "--impl",
                    "shm,gloo"), 5),
              Part("leaderboard-2025", "both passes of attention, one GPU", ("leaderboard_2025",), 10),
              Part("leaderboard-2026", "slices of the 8B model, one GPU", ("leaderboard_2026", "--preset", "slices"),
                   20)]
    return parts


def cpu_parts(sizes):
    """The same experiments at their smallest sizes: whether the script works, and no times to keep."""
    smoke = ("--preset", "smoke")
    collective = "distributed_communication_single_node"
    among = values("world_size", sizes)
    most_first = sorted(sizes, reverse=True)
    parts = [Part("all_reduce", "all-reduce", (collective, *values("operation", ["all_reduce"]), *among, *smoke), 0.3)]
    parts += [Part(f"ddp-tiny-{ranks}", f"strategies of data parallelism on {ranks}",
                   ("ddp_bucketed_benchmarking", *values("batch", [2 * ranks]), *values("world_size", [ranks]),
                    *values("strategy", strategies), *values("bucket_mb", [0]), *smoke), 0.4)
              for ranks, strategies in [*((ranks, ("none", "naive", "planned")) for ranks in most_first),
                                        (1, ["none"])]]
    for ranks in most_first:
        common = (*values("batch", [2 * ranks]), *values("world_size", [ranks]), *smoke)
        parts += [Part(f"state-tiny-{ranks}", f"the optimizer's state divided, on {ranks}",
                       ("optimizer_state_sharding_accounting", *values("sharding", ("none", "zero1")), *common), 0.4),
                  Part(f"fsdp-tiny-{ranks}", f"full sharding, on {ranks}",
                       ("fsdp_accounting", *values("granularity", ["block"]), *common), 0.4)]
    # 24 divides among all of SIZES.
    a_layer = (*values("layout", ["fsdp"]), *values("tokens", (24, 504)), *values("d_ff", [24]))
    one_gather = (*values("operation", ["all_gather"]), *values("bytes", [1000]))
    return parts + [Part("crossing", "communicating a layer beside computing it",
                         ("layer_crossover", *a_layer, *among, *smoke), 0.4),
                    Part("others", "all-gather", (collective, *one_gather, *among, *smoke), 0.3),
                    Part("rings", "two rings", ("alternate_ring_all_reduce", *among, *smoke, "--impl", "parts,whole"),
                         0.3),
                    Part("leaderboard-2025", "both passes of attention",
                         ("leaderboard_2025", "--device", "cpu", *smoke, "--impl", "flash_tiled"), 0.4),
                    Part("pytorch-collectives-2", "PyTorch's all-reduce on 2, over Gloo",
                         ("collectives", "--device", "cpu", "--ranks", "2", "--bytes", "1000,1000000"), 5, True)]
