-- sentence: A step of {model} (context {context}, {precision}, {implementation}, {device}) is {forward} % forward pass, {backward} %
--   backward pass and {optimizer} % optimizer, each waited for; backward takes {ratio} times as long as forward, where the matrix
--   products alone are 2 to 1.
-- experiment: benchmarking_script
-- fills: b
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left;
--   forward|%|.3g|right; backward|%|.3g|right; optimizer|%|.3g|right; ratio|×|.3g|right
WITH parts AS (
  SELECT v.params, v.implementation, v.device, v.comparability_key, v.run_uid, f.value AS f, b.value AS b, o.value AS o,
         -- Smallest and largest model, each at the longest context in the simplest precision.
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation ORDER BY p.value, v.params ->> '$.context' DESC,
                            v.params ->> '$.precision' <> 'fp32', v.params, v.protocol) AS smallest,
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation ORDER BY p.value DESC, v.params ->> '$.context' DESC,
                            v.params ->> '$.precision' <> 'fp32', v.params, v.protocol) AS largest
    FROM v_measured v
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'forward_mean'
    JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'backward_mean'
    JOIN metric o ON o.attempt_id = v.attempt_id AND o.name = 'optimizer_mean'
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.warmup' >= 5
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context, params ->> '$.precision' AS precision, implementation,
       device, 100 * f / (f + b + o) AS forward, 100 * b / (f + b + o) AS backward, 100 * o / (f + b + o) AS optimizer,
       b / f AS ratio, run_uid
  FROM parts
 WHERE smallest = 1 OR largest = 1
 ORDER BY device, implementation, smallest;
