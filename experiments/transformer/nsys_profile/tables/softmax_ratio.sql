-- sentence: In attention of {model} (context {context}, {precision}, {implementation}, {device}) softmax takes {time}
--   times as long as the two matrix products with {flops} times their FLOPs, {why}.
-- experiment: nsys_profile
-- fills: e
-- command: syslab run nsys_profile --impl host_eager
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left;
--   time|1|ratio(low, high)|right; flops|1|.3g|right; why|1|s|left
WITH sums AS (
  SELECT attempt_id, sum(ms) FILTER (WHERE kind = 'softmax') AS softmax,
         sum(ms) FILTER (WHERE operation IN ('attention.scores.gemm', 'attention.values.gemm')) AS products
    FROM v_kernel
   WHERE experiment = ?1 AND is_good AND phase = 'forward'
   GROUP BY attempt_id
),
t AS (
  -- The median of the recorded steps' ratios; a database from before they were told has their sums alone.
  SELECT v.params, v.implementation, v.device, v.gpu_name, v.run_uid, coalesce(r.value, k.softmax / k.products) AS time,
         r.ci_low AS low, r.ci_high AS high, s.value / f.value AS flops,
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                ORDER BY n.value DESC, v.params ->> '$.context' DESC,
                                         v.params ->> '$.precision' <> 'fp32', v.attempt_uid) AS place
    FROM v_measured v
    JOIN sums k ON k.attempt_id = v.attempt_id AND k.softmax > 0 AND k.products > 0
    LEFT JOIN metric r ON r.attempt_id = v.attempt_id AND r.name = 'softmax_over_products'
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'attention_product_flops'
    JOIN metric s ON s.attempt_id = v.attempt_id AND s.name = 'softmax_flops'
    JOIN metric n ON n.attempt_id = v.attempt_id AND n.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, implementation, device, time, low, high, flops,
       iif(gpu_name IS NULL, 'because it is bound by the exponential and by memory',
           'probably because it is bound by memory (not measured)') AS why, run_uid
  FROM t
 WHERE place = 1
 ORDER BY device, implementation;
