-- A row a kernel and phase ('': all phases) of the newest attempt at a case (v_measured, which names hand-ins): kernels
-- of a trace, summed by name over the steps that were recorded. `kernel_stat.kernel` is "operation/name": `operation`
-- is the path of operators that it worked for, "attention.scores.gemm", `name` the kernel's own (on the CPU, where a
-- call of an operator is the kernel, the rung's). `kind` sorts operations coarsely; `share` is of the phase's time.
-- Times in ms a step.
CREATE VIEW v_kernel AS
WITH k AS (
  SELECT s.*, substr(s.kernel, 1, instr(s.kernel, '/') - 1) AS operation,
         substr(s.kernel, instr(s.kernel, '/') + 1) AS name
    FROM kernel_stat s
)
SELECT n.attempt_id, n.attempt_uid, n.run_uid, n.experiment,
       n.params, n.implementation, n.protocol, n.comparability_key,
       n.device, n.is_good, k.rank, k.phase, k.kernel, k.operation,
       k.name,
       CASE WHEN k.operation = 'gemm' OR k.operation LIKE '%.gemm' THEN 'matrix products'
            WHEN k.operation LIKE 'attention.softmax%' THEN 'softmax'
            WHEN k.operation = 'attention' OR k.operation LIKE 'attention.%' THEN 'attention besides'
            WHEN k.operation IN ('adamw', 'clip', 'global_norm') THEN 'optimizer'
            WHEN k.operation IN ('rms_norm', 'swiglu', 'rope', 'cast') THEN 'norm, SwiGLU, RoPE, casts'
            ELSE 'loss, embedding, copies' END AS kind,
       k.calls, k.calls * 1.0 / steps.value AS calls_a_step, k.total_ns * 1e-6 / steps.value AS ms,
       k.total_ns * 1e-6 / k.calls AS mean_ms, k.min_ns * 1e-6 AS least_ms, k.max_ns * 1e-6 AS most_ms,
       100.0 * k.total_ns / nullif(sum(k.total_ns) OVER (PARTITION BY k.attempt_id, k.rank, k.phase), 0) AS share
  FROM k
  JOIN v_measured n ON n.attempt_id = k.attempt_id
  JOIN metric steps ON steps.attempt_id = k.attempt_id AND steps.rank = k.rank
                   AND steps.name = 'profiled_steps' AND steps.value > 0;
