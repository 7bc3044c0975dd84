-- sentence: With {precision} ({implementation}, {device}, context {context}) forward + backward is {small_gain} times
--   as fast as in fp32 for {small_model} and {large_gain} for {large_model}. {direction}.
-- experiment: benchmarking_mixed_precision
-- command: syslab run benchmarking_script benchmarking_mixed_precision --impl eager
-- fills: c
-- columns: implementation|1|code|left; precision|1|s|left; device|1|s|left; context|1|d|right;
--   small_gain|1|ratio(small_low, small_high)|right; small_model|1|s|left;
--   large_gain|1|ratio(large_low, large_high)|right; large_model|1|s|left; direction|1|s|left
WITH t AS MATERIALIZED (
  SELECT f.*, f.ms + b.ms AS both, f.least_ms + b.least_ms AS low, f.most_ms + b.most_ms AS high
    FROM v_pass f
    JOIN v_pass b ON b.attempt_id = f.attempt_id AND b.what = 'backward'
   WHERE f.experiment IN (?1, 'benchmarking_script') AND f.what = 'forward' AND f.within
),
gains AS (
  SELECT h.params, h.precision, h.implementation, h.device,
         h.comparability_key, h.protocol, h.parameters, f.both AS fp32,
         f.both / h.both AS gain, f.low / h.high AS low, f.high / h.low AS high, max(h.run_uid, f.run_uid) AS run_uid,
         min(f.experiment <> h.experiment) AS far,  -- of several rows the one of this experiment
         row_number() OVER (PARTITION BY h.precision, h.implementation, h.comparability_key,
                                         h.protocol, h.params ->> '$.context'
                                ORDER BY h.parameters, h.params) AS up,
         row_number() OVER (PARTITION BY h.precision, h.implementation, h.comparability_key,
                                         h.protocol, h.params ->> '$.context'
                                ORDER BY h.parameters DESC, h.params) AS down
    FROM t h
    JOIN t f ON f.alike = h.alike AND f.implementation = h.implementation AND f.comparability_key = h.comparability_key
            AND f.protocol = h.protocol AND f.precision = 'fp32'
   WHERE h.precision <> 'fp32' AND h.experiment = ?1
   GROUP BY h.attempt_id
)
SELECT s.implementation, s.precision, s.device, s.params ->> '$.context' AS context,
       s.gain AS small_gain, s.low AS small_low, s.high AS small_high,
       s.params ->> '$.model' AS small_model, l.gain AS large_gain, l.low AS large_low, l.high AS large_high,
       l.params ->> '$.model' AS large_model,
       CASE WHEN l.low > s.high
              THEN 'The speed-up grows with model size' ||
                   coalesce((SELECT printf(', as does, where profiled, the share of matrix products in forward '
                                           || '+ backward, which half precision accelerates (fp32: %s %% of %s)',
                                           p.shares, p.models)
                               FROM v_matrix_products p
                              WHERE p.part = 'both' AND p.implementation = s.implementation
                                AND p.context = s.params ->> '$.context'),
                            ', probably because matrix products, which half precision accelerates, '
                            || 'take a larger share of it (not measured)')
            WHEN l.high < s.low THEN 'The speed-up shrinks with model size: something that half precision '
                                     || 'does not accelerate grows faster than the matrix products'
            WHEN l.low IS NULL OR s.low IS NULL THEN 'Too few samples to compare the two speed-ups'
            ELSE printf('We see no difference in speed-up between %s and %s', s.params ->> '$.model',
                        l.params ->> '$.model') END AS direction, max(s.run_uid, l.run_uid) AS run_uid
  FROM gains s
  JOIN gains l ON l.precision = s.precision AND l.implementation = s.implementation
              AND l.comparability_key = s.comparability_key
              AND l.protocol = s.protocol AND l.params ->> '$.context' = s.params ->> '$.context' AND l.down = 1
 WHERE s.up = 1 AND l.parameters > s.parameters
 ORDER BY s.device, context, s.implementation, s.precision;
