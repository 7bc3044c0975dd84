-- title: FlashAttention-2 forward pass
-- caption: Median time of one call with its 95 % interval; `vs naive` is how many times as fast as the kernel that holds the score
--   matrix, on the same inputs.
-- experiment: flash_forward
-- columns: batch?|1|d|right; heads?|1|d|right; heads_kv?|1|d|right; seq|1|d|right; seq_k?|1|d|right; head_dim|1|d|right;
--   dtype|1|s|left; causal|1|flag|left; align?|1|s|left; implementation|1|code|left; time|ms|ci(low, high)|right;
--   rate|TFLOP/s|.3g|right; vs_naive|×|.3g|right; worst_error|1|.1e|right; bound|1|.1e|right; scratch|B|d|right;
--   n|1|d|right; checked|%|.3g|right; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: The rate counts 4·B·H·pairs·D operations: pairs of query and key that the mask leaves.
-- note: Worst error is where the error is largest beside its bound, over all outputs and all verified calls; checked is
--   the share of the outputs that was compared.
WITH t AS (
  SELECT * FROM v_newest WHERE experiment = 'flash_forward' AND task = 'measure'
),
metric_of AS (
  SELECT m.attempt_id,
         max(m.value)   FILTER (WHERE m.name = 'time')               AS time,
         max(m.ci_low)  FILTER (WHERE m.name = 'time')               AS low,
         max(m.ci_high) FILTER (WHERE m.name = 'time')               AS high,
         max(m.n)       FILTER (WHERE m.name = 'time')               AS n,
         max(m.value)   FILTER (WHERE m.name = 'tflops')             AS rate,
         max(m.value)   FILTER (WHERE m.name = 'peak_scratch_bytes') AS scratch
    FROM metric m JOIN t ON t.attempt_id = m.attempt_id
   GROUP BY m.attempt_id
),
worst AS (
  SELECT attempt_id, worst_error, tolerance, min(fraction_checked) OVER (PARTITION BY attempt_id) AS fraction,
         row_number() OVER (PARTITION BY attempt_id
                                ORDER BY worst_error / nullif(tolerance, 0) DESC, worst_error DESC) AS place
    FROM check_result
   WHERE contract IS NULL AND (name LIKE 'reference:%' OR name LIKE 'sample%:%')
     AND attempt_id IN (SELECT attempt_id FROM t)
)
SELECT t.params ->> '$.batch' AS batch, t.params ->> '$.heads' AS heads, t.params ->> '$.heads_kv' AS heads_kv,
       t.params ->> '$.seq' AS seq, t.params ->> '$.seq_k' AS seq_k, t.params ->> '$.head_dim' AS head_dim,
       t.params ->> '$.dtype' AS dtype, t.params ->> '$.causal' AS causal, t.params ->> '$.align' AS align,
       t.implementation, 1e3 * m.time AS time, 1e3 * m.low AS low, 1e3 * m.high AS high, m.rate,
       naive.time / m.time AS vs_naive, w.worst_error, w.tolerance AS bound, m.scratch, m.n,
       100 * w.fraction AS checked, t.protocol, coalesce(t.gpu_name, t.cpu_model, 'unknown') AS device,
       t.status, t.message, t.run_uid
  FROM t
  LEFT JOIN metric_of m ON m.attempt_id = t.attempt_id
  LEFT JOIN worst w     ON w.attempt_id = t.attempt_id AND w.place = 1
  LEFT JOIN t peer      ON peer.case_id = t.case_id AND peer.protocol = t.protocol AND peer.world_size = t.world_size
                       AND peer.comparability_key = t.comparability_key AND peer.implementation = 'naive'
                       AND NOT peer.is_mine AND peer.status = 'ok'
  LEFT JOIN metric_of naive ON naive.attempt_id = peer.attempt_id
 ORDER BY seq, seq_k, head_dim, dtype <> 'fp32', dtype, causal, align, batch, heads, heads_kv, device,
          t.protocol, t.is_mine, t.implementation = 'reference' DESC, t.implementation = 'naive' DESC, t.implementation;
