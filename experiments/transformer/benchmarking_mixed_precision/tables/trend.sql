-- sentence: {implementation} in {precision} ({device}, context {context}): forward + backward is {small_gain} times as fast as fp32 for
--   {small_model} ({small_saved} of {small_fp32} ms saved) and {large_gain} times for {large_model} ({large_saved} of {large_fp32} ms).
--   {direction}.
-- experiment: benchmarking_mixed_precision
-- fills: c
-- columns: implementation|1|code|left; precision|1|code|left; device|1|s|left; context|1|d|right;
--   small_gain|1|ratio(small_low, small_high)|right; small_model|1|s|left; small_saved|1|.3g|right; small_fp32|1|.4g|right;
--   large_gain|1|ratio(large_low, large_high)|right; large_model|1|s|left; large_saved|1|.3g|right; large_fp32|1|.4g|right; direction|1|s|left
WITH t AS MATERIALIZED (
  SELECT v.*, json_remove(v.params, '$.precision') AS point, v.params ->> '$.precision' AS precision, p.value AS parameters,
         1e3 * (f.value + b.value) AS both, 1e3 * (f.ci_low + b.ci_low) AS low, 1e3 * (f.ci_high + b.ci_high) AS high
    FROM v_measured v
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'forward'
    JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'backward'
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
),
gains AS (
  SELECT h.params, h.precision, h.implementation, h.device, h.comparability_key, h.protocol, h.parameters, f.both AS fp32,
         f.both - h.both AS saved, f.both / h.both AS gain, f.low / h.high AS low, f.high / h.low AS high, max(h.run_uid, f.run_uid) AS run_uid,
         row_number() OVER (PARTITION BY h.precision, h.implementation, h.comparability_key, h.protocol, h.params ->> '$.context'
                                ORDER BY h.parameters, h.params) AS up,
         row_number() OVER (PARTITION BY h.precision, h.implementation, h.comparability_key, h.protocol, h.params ->> '$.context'
                                ORDER BY h.parameters DESC, h.params) AS down
    FROM t h
    JOIN t f ON f.point = h.point AND f.implementation = h.implementation AND f.comparability_key = h.comparability_key
            AND f.protocol = h.protocol AND f.precision = 'fp32'
   WHERE h.precision <> 'fp32'
)
SELECT s.implementation, s.precision, s.device, s.params ->> '$.context' AS context, s.gain AS small_gain, s.low AS small_low, s.high AS small_high,
       s.params ->> '$.model' AS small_model, s.saved AS small_saved, s.fp32 AS small_fp32, l.gain AS large_gain, l.low AS large_low, l.high AS large_high,
       l.params ->> '$.model' AS large_model, l.saved AS large_saved, l.fp32 AS large_fp32,
       CASE WHEN l.low > s.high
              THEN 'The speed-up grows with model size, because matrix products, which half precision accelerates, take a larger share of the step; '
                   || 'launches and, in `eager`, casts cost the same in every precision'
            WHEN l.high < s.low THEN 'The speed-up shrinks with model size: something that half precision does not accelerate grows faster than the matrix products'
            WHEN l.low IS NULL OR s.low IS NULL THEN 'Too few samples to compare the two speed-ups'
            ELSE printf('We see no difference in speed-up between %s and %s', s.params ->> '$.model', l.params ->> '$.model') END AS direction,
       max(s.run_uid, l.run_uid) AS run_uid
  FROM gains s
  JOIN gains l ON l.precision = s.precision AND l.implementation = s.implementation AND l.comparability_key = s.comparability_key
              AND l.protocol = s.protocol AND l.params ->> '$.context' = s.params ->> '$.context' AND l.down = 1
 WHERE s.up = 1 AND l.parameters > s.parameters
 ORDER BY s.device, context, s.implementation, s.precision;
