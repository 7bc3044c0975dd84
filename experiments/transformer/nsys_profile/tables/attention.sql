-- title: Profiling: softmax and matrix products in attention
-- caption: Scores, softmax and values in forward, all layers: time, FLOPs (2·B·H·T²·d a product, 5·B·H·T² softmax), and
--   softmax relative to the two products.
-- experiment: nsys_profile
-- fills: e
-- columns: model|1|s|left; batch?|1|d|right; context|1|d|right; precision|1|s|left; mode?|1|s|left;
--   implementation|1|code|left; scores|ms|.3g|right; softmax|ms|.3g|right; values_ms as values|ms|.3g|right;
--   product_flops as products|GFLOP|.3g|right; softmax_flops as softmax|GFLOP|.3g|right;
--   time_ratio as softmax / products, time|×|ci(time_low, time_high)|right;
--   flop_ratio as softmax / products, FLOPs|×|.2g|right; protocol?|1|s|left; device?|1|s|left
-- note: `scores` and `values` include scale and mask; the time ratio is of the two products alone, the median of
--   recorded steps with its 95 % interval, the times are means.
-- empty: No measured implementation runs attention in parts: `syslab run nsys_profile --impl host_eager` (CPU) or
--   `eager` (GPU).
WITH parts AS (
  SELECT attempt_id, params, implementation, protocol, device, run_uid,
         sum(ms) FILTER (WHERE operation LIKE 'attention.scores%') AS scores,
         sum(ms) FILTER (WHERE kind = 'softmax') AS softmax,
         sum(ms) FILTER (WHERE operation LIKE 'attention.values%') AS values_ms,
         sum(ms) FILTER (WHERE operation IN ('attention.scores.gemm', 'attention.values.gemm')) AS products
    FROM v_kernel
   WHERE experiment = ?1 AND is_good AND phase = 'forward'
   GROUP BY attempt_id
)
SELECT p.params ->> '$.model' AS model, p.params ->> '$.batch' AS batch, p.params ->> '$.context' AS context,
       p.params ->> '$.precision' AS precision, p.params ->> '$.mode' AS mode, p.implementation,
       p.scores, p.softmax, p.values_ms, 1e-9 * f.value AS product_flops,
       1e-9 * s.value AS softmax_flops, coalesce(r.value, p.softmax / p.products) AS time_ratio,
       r.ci_low AS time_low, r.ci_high AS time_high, s.value / f.value AS flop_ratio, p.protocol, p.device, p.run_uid
  FROM parts p
  JOIN metric f ON f.attempt_id = p.attempt_id AND f.name = 'attention_product_flops'
  JOIN metric s ON s.attempt_id = p.attempt_id AND s.name = 'softmax_flops'
  LEFT JOIN metric r ON r.attempt_id = p.attempt_id AND r.name = 'softmax_over_products'
 WHERE p.products > 0
 ORDER BY p.device, f.value, model, precision, mode, p.protocol, p.implementation;
