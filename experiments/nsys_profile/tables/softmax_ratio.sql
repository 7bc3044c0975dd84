-- sentence: Inside attention of {model} (context {context}, {precision}, {implementation}, {device}) softmax takes {time} times as long as the
--   two products, with {flops} times their operations: an operation of softmax costs {worse} times as much, being bound by memory (on a CPU,
--   by the exponential, too).
-- experiment: nsys_profile
-- fills: e
-- command: syslab run nsys_profile --impl host_eager
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left; time|1|.3g|right;
--   flops|1|.2g|right; worse|1|.3g|right
WITH parts AS (
  SELECT k.attempt_id, k.attempt_uid, k.params, k.implementation, k.device, k.comparability_key, k.run_uid,
         sum(ms) FILTER (WHERE kind = 'softmax') AS softmax,
         sum(ms) FILTER (WHERE operation IN ('attention.scores.gemm', 'attention.values.gemm')) AS products
    FROM v_kernel k
   WHERE experiment = ?1 AND is_good AND phase = 'forward'
   GROUP BY attempt_id
),
t AS (
  SELECT p.*, s.value / f.value AS ratio,
         row_number() OVER (PARTITION BY p.comparability_key, p.implementation
                                ORDER BY n.value DESC, p.params ->> '$.context' DESC, p.params ->> '$.precision' <> 'fp32', p.attempt_uid) AS place
    FROM parts p
    JOIN metric f ON f.attempt_id = p.attempt_id AND f.name = 'attention_product_flops'
    JOIN metric s ON s.attempt_id = p.attempt_id AND s.name = 'softmax_flops'
    JOIN metric n ON n.attempt_id = p.attempt_id AND n.name = 'parameters'
   WHERE p.products > 0 AND p.softmax > 0
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context, params ->> '$.precision' AS precision, implementation, device,
       softmax / products AS time, ratio AS flops, softmax / products / ratio AS worse, run_uid
  FROM t
 WHERE place = 1
 ORDER BY device, implementation;
