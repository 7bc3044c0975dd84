-- sentence: bf16 has the range of fp32 and does not overflow, but only 8 significant bits: {norm} of {dim} elements of
--   unit variance (mean {offset}) has a relative error of {low} with {implementation} sums in bf16 and {high} with fp32
--   statistics, so layer norm should keep fp32 under bf16.
-- experiment: benchmarking_mixed_precision
-- command: syslab run norm_precision
-- fills: b
-- columns: norm|1|code|left; offset|1|d|right; dim|1|d|right; low|1|.1e|right; implementation|1|code|left;
--   high|1|.1e|right
WITH t AS (
  SELECT v.params, v.implementation, m.value AS error, v.run_uid
    FROM v_newest v
    JOIN metric m ON m.attempt_id = v.attempt_id AND m.name = 'error_out' AND m.value IS NOT NULL
   WHERE v.experiment = 'norm_precision' AND v.task = 'measure' AND v.status = 'ok' AND v.params ->> '$.dtype' = 'bf16'
     AND v.params ->> '$.exponent' = 0
)
SELECT l.params ->> '$.norm' AS norm, l.params ->> '$.offset' AS offset,
       l.params ->> '$.dim' AS dim, l.error AS low, l.implementation,
       h.error AS high, max(l.run_uid, h.run_uid) AS run_uid
  FROM t l
  JOIN t h ON json_remove(h.params, '$.statistics') = json_remove(l.params, '$.statistics')
          AND h.implementation = l.implementation
          AND h.params ->> '$.statistics' = 'fp32'
 -- A tree is the milder way to sum; a mean far from 0 matters to layer norm alone.
 WHERE l.params ->> '$.statistics' = 'data' AND l.implementation = 'pairwise'
   AND (l.params ->> '$.norm' = 'layer_norm' OR l.params ->> '$.offset' = 0) AND NOT EXISTS (
         SELECT 1 FROM v_newest v
           JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'finite_rows' AND f.value < 16
          WHERE v.experiment = 'norm_precision' AND v.task = 'measure' AND v.params ->> '$.dtype' = 'bf16')
 ORDER BY norm, dim, offset, l.implementation DESC;
