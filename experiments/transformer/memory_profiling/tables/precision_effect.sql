-- sentence: With {precision} a training step of {model} (context {context}, {implementation}, {device}) peaks at {half} instead of {full},
--   {change} %, and inference at {half_forward} instead of {full_forward}, {change_forward} %: parameters, gradients and moments
--   stay fp32, and activations that are kept shrink.
-- experiment: memory_profiling
-- fills: c
-- command: syslab run memory_profiling --preset paper
-- columns: precision|1|s|left; model|1|s|left; context|1|d|right; implementation|1|code|left; device|1|s|left; half|MiB|.5b|right;
--   full|MiB|.5b|right; change|%|.2g|right; half_forward|MiB|.5b|right; full_forward|MiB|.5b|right; change_forward|%|.2g|right
WITH t AS (
  SELECT v.params ->> '$.model' AS model, v.params ->> '$.context' AS context, v.params ->> '$.precision' AS precision,
         v.params ->> '$.pass' AS pass, v.implementation, v.device, v.run_uid, p.value / 1048576 AS peak, n.value AS parameters,
         -- All that a pair must have in common.
         json_array(json_remove(v.params, '$.precision', '$.pass'), v.implementation, v.world_size, v.protocol, v.comparability_key) AS point
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'peak_bytes'
    JOIN metric n ON n.attempt_id = v.attempt_id AND n.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
)
SELECT h.precision, h.model, h.context, h.implementation, h.device, h.peak AS half, f.peak AS full, 100 * (h.peak / f.peak - 1) AS change,
       hf.peak AS half_forward, ff.peak AS full_forward, 100 * (hf.peak / ff.peak - 1) AS change_forward, h.run_uid
  FROM t h
  JOIN t f  ON f.point = h.point AND f.precision = 'fp32' AND f.pass = 'step'
  JOIN t hf ON hf.point = h.point AND hf.precision = h.precision AND hf.pass = 'forward'
  JOIN t ff ON ff.point = h.point AND ff.precision = 'fp32' AND ff.pass = 'forward'
 WHERE h.precision LIKE '%16%' AND h.pass = 'step'
 ORDER BY h.device, h.parameters, h.context, h.implementation, h.point;
