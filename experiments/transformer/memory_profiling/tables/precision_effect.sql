-- sentence: With {precision} a training step of {model} (context {context}, {implementation}, {device}) peaks at {half} versus {full} in fp32
--   ({change}), inference at {half_forward} versus {full_forward} ({change_forward}). {why}
-- experiment: memory_profiling
-- fills: c
-- command: syslab run memory_profiling --preset paper
-- columns: precision|1|s|left; model|1|s|left; context|1|d|right; implementation|1|code|left; device|1|s|left; half|MiB|.5b|right;
--   full|MiB|.5b|right; change|%|s|right; half_forward|MiB|.5b|right; full_forward|MiB|.5b|right; change_forward|%|s|right;
--   why|1|s|left
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
SELECT h.precision, h.model, h.context, h.implementation, h.device, h.peak AS half, f.peak AS full, printf('%+.2g %%', 100 * (h.peak / f.peak - 1)) AS change,
       hf.peak AS half_forward, ff.peak AS full_forward, printf('%+.2g %%', 100 * (hf.peak / ff.peak - 1)) AS change_forward,
       -- Autocast keeps a copy of the weights, two bytes a parameter at most; bf16_fused has it in the upper halves of the weights themselves.
       CASE WHEN h.precision LIKE '%_fused' THEN 'Kept activations shrink, and the bf16 weights are the upper halves of the fp32 ones: there is no copy.'
            WHEN max(h.peak - f.peak, hf.peak - ff.peak) <= 0
              THEN printf('Activations shrink by more than the half-precision copy of the weights (up to %.4g MiB) adds.', 2 * h.parameters / 1048576)
            WHEN max(h.peak - f.peak, hf.peak - ff.peak) <= 2 * h.parameters / 1048576
              THEN printf('%s because autocast adds a half-precision copy of the weights (up to %.4g MiB), more than activations save there.',
                          CASE WHEN h.peak > f.peak AND hf.peak > ff.peak THEN 'Both peaks grow' WHEN h.peak > f.peak THEN 'The step grows' ELSE 'Inference grows' END,
                          2 * h.parameters / 1048576)
            ELSE printf('The growth exceeds the half-precision copy of the weights (up to %.4g MiB); the rest is not explained.', 2 * h.parameters / 1048576)
            END AS why, h.run_uid
  FROM t h
  JOIN t f  ON f.point = h.point AND f.precision = 'fp32' AND f.pass = 'step'
  JOIN t hf ON hf.point = h.point AND hf.precision = h.precision AND hf.pass = 'forward'
  JOIN t ff ON ff.point = h.point AND ff.precision = 'fp32' AND ff.pass = 'forward'
 WHERE h.precision LIKE '%16%' AND h.pass = 'step'
 ORDER BY h.device, h.parameters, h.context, h.implementation, h.point;
