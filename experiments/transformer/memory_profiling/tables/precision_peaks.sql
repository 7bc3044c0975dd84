-- title: Peak memory under mixed precision
-- caption: Peak live memory in half precision and in fp32, by the allocator.
-- experiment: memory_profiling
-- fills: c
-- command: syslab run memory_profiling --preset paper
-- empty: No case in half precision beside one in fp32. Half precision needs a GPU: `syslab run memory_profiling
--   --preset paper`, or `-a model=small -a precision=fp32,bf16_amp` for a small model.
-- columns: model|1|s|left; batch?|1|d|right; context|1|d|right; pass|1|s|left; implementation|1|code|left;
--   precision|1|s|left; half as peak|MiB|.5g|right; full as peak in fp32|MiB|.5g|right; change|%|.2g|right;
--   device?|1|s|left
-- note: Parameters, gradients and moments stay fp32, autocast adds a half-precision copy of the weights (`bf16_fused`
--   has none), and activations shrink: a pass grows where the copy exceeds what activations save.
WITH t AS (
  SELECT v.params, v.params ->> '$.precision' AS precision, v.implementation,
         v.device, v.run_uid, p.value / 1048576 AS peak, n.value AS parameters,
         -- All that a pair must have in common.
         json_array(json_remove(v.params, '$.precision'), v.implementation,
                    v.world_size, v.protocol, v.comparability_key) AS point
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'peak_bytes'
    JOIN metric n ON n.attempt_id = v.attempt_id AND n.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
)
SELECT h.params ->> '$.model' AS model, h.params ->> '$.batch' AS batch,
       h.params ->> '$.context' AS context, h.params ->> '$.pass' AS pass,
       h.implementation, h.precision, h.peak AS half, f.peak AS full,
       100 * (h.peak / f.peak - 1) AS change, h.device, h.run_uid
  FROM t h
  JOIN t f ON f.point = h.point AND f.precision = 'fp32'
 WHERE h.precision LIKE 'bf16%' OR h.precision LIKE 'fp16%'
 ORDER BY h.device, h.parameters, model, context,
          CASE h.params ->> '$.pass' WHEN 'forward' THEN 0 WHEN 'forward_kept' THEN 1 ELSE 2 END,
          h.implementation, h.precision;
