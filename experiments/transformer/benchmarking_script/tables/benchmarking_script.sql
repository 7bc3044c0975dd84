-- title: Benchmarking script: time by phase
-- caption: Mean ± standard deviation (n − 1) of each phase, synchronised before and after, and of the whole step, timed
--   without synchronising inside. Protocol cs336: 5 warm-up steps, 10 measured.
-- about backward_over_forward: `bwd / fwd` of the medians.
-- about peak: Mode `forward` keeps activations for backward too, so its `peak` is above that of inference.
-- experiment: benchmarking_script
-- fills: a, b
-- columns: model|1|s|left; @sizes;
--   batch?|1|d|right; context|1|d|right; precision|1|s|left; mode?|1|s|left; implementation|1|code|left;
--   forward|ms|ci(forward_low, forward_high)|right; backward|ms|ci(backward_low, backward_high)|right;
--   optimizer|ms|ci(optimizer_low, optimizer_high)|right; step|ms|ci(step_low, step_high)|right;
--   backward_over_forward as bwd / fwd|×|ci(ratio_low, ratio_high)|right; tflops as rate|TFLOP/s|.3g|right;
--   tokens as tokens|1/s|.4g|right; peak|GiB|.4g|right; n|1|d|right; noise?|1|s|left; protocol?|1|s|left;
--   device?|1|s|left; status|1|status|left
-- note: `forward` includes the loss and its gradient by the logits. `graph` is one CUDA graph and has no phases.
-- note: `bwd / fwd` is of the medians with their 95 % intervals.
-- note: The rate counts the baseline's matrix products, without credit for a causal mask, over the median. `peak`
--   includes parameters, gradients and moments.
WITH t AS MATERIALIZED (
  SELECT v.*, metrics AS found,
         b.value / f.value AS backward_over_forward,
         b.ci_low / f.ci_high AS ratio_low, b.ci_high / f.ci_low AS ratio_high
    FROM v_measured v
    LEFT JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'forward' AND v.ending IS NOT 'failed'
    LEFT JOIN metric b ON b.attempt_id = v.attempt_id AND v.status <> 'error' AND b.name = 'backward'
   WHERE v.experiment = ?1 AND v.params ->> '$.warmup' >= 5
),
s AS (
  SELECT *, 1e3 * (found ->> '$.forward_mean') AS forward, 1e3 * (found ->> '$.forward_stddev') AS forward_sd,
         1e3 * (found ->> '$.backward_mean') AS backward, 1e3 * (found ->> '$.backward_stddev') AS backward_sd,
         1e3 * (found ->> '$.optimizer_mean') AS optimizer, 1e3 * (found ->> '$.optimizer_stddev') AS optimizer_sd,
         1e3 * (found ->> '$.time_mean') AS step, 1e3 * (found ->> '$.time_stddev') AS step_sd
    FROM t
)
SELECT params ->> '$.model' AS model, params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff,
       params ->> '$.layers' AS layers, params ->> '$.heads' AS heads, params ->> '$.vocab' AS vocab,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context, params ->> '$.precision' AS precision,
       params ->> '$.mode' AS mode, implementation,
       forward, forward - forward_sd AS forward_low, forward + forward_sd AS forward_high,
       backward, backward - backward_sd AS backward_low, backward + backward_sd AS backward_high,
       optimizer, optimizer - optimizer_sd AS optimizer_low, optimizer + optimizer_sd AS optimizer_high,
       step, step - step_sd AS step_low, step + step_sd AS step_high,
       backward_over_forward, ratio_low, ratio_high, tflops,
       found ->> '$.tokens_per_second' AS tokens, (found ->> '$.peak_bytes') / 1073741824 AS peak,
       n, noise, protocol, device, status, message, run_uid
  FROM s
 ORDER BY coalesce(found ->> '$.parameters',
                   CASE model WHEN 'small' THEN 1.3e8 WHEN 'medium' THEN 4.2e8 WHEN 'large' THEN 9.7e8
                              WHEN 'xl25' THEN 2e9 WHEN 'xl26' THEN 3.4e9 WHEN '2.7B' THEN 3.4e9
                              WHEN '10B' THEN 1.3e10 WHEN '8B' THEN 8.1e9 ELSE 0 END),
          model, context,
          CASE precision WHEN 'fp64' THEN 0 WHEN 'fp32' THEN 1 WHEN 'tf32' THEN 2 ELSE 3 END, precision, mode,
          device, protocol, CASE implementation WHEN 'eager' THEN 1 WHEN 'fused' THEN 2 WHEN 'graph' THEN 3 ELSE 0 END,
          implementation;
