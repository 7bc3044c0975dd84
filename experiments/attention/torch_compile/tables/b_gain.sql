-- sentence: Fused by hand (`{implementation}`) beside op by op (`eager`), context {context}, {precision} ({device}): forward {forward}; the whole training
--   step, AdamW included, {step}. {trend}
-- experiment: torch_compile
-- fills: b
-- columns: implementation|1|s|left; context|1|d|right; precision|1|s|left; device|1|s|left; forward|1|s|left; step|1|s|left; trend|1|s|left
WITH t AS MATERIALIZED (
  SELECT v.*, metrics ->> '$.parameters' AS parameters FROM v_measured v WHERE v.experiment = ?1 AND v.is_good AND NOT v.is_mine
),
pair AS (
  SELECT f.implementation, f.params ->> '$.model' AS model, f.params ->> '$.context' AS context, f.params ->> '$.precision' AS "precision",
         f.params ->> '$.mode' AS mode, f.device, f.comparability_key, f.protocol, f.run_uid, f.parameters, e.time_ms / f.time_ms AS gain
    FROM t f
    JOIN t e ON e.params = f.params AND e.implementation = 'eager' AND e.comparability_key = f.comparability_key AND e.protocol = f.protocol
   WHERE f.implementation = 'fused' AND f.params ->> '$.mode' IN ('forward', 'train')
   ORDER BY f.parameters
),
ends AS (
  SELECT *, first_value(gain) OVER up AS first, last_value(gain) OVER up AS last
    FROM pair
  WINDOW up AS (PARTITION BY comparability_key, protocol, context, "precision", mode ORDER BY parameters
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
   ORDER BY parameters
)
SELECT implementation, context, "precision", device,
       group_concat(iif(mode = 'forward', printf('%.3g× (%s)', gain, replace(model, 'xl2', 'xl of 202')), NULL), ', ') AS forward,
       group_concat(iif(mode = 'train', printf('%.3g× (%s)', gain, replace(model, 'xl2', 'xl of 202')), NULL), ', ') AS step,
       iif(min(iif(mode = 'train', first > last, 1)), 'The gain falls with size, as products take more of the time.',
           'It does not fall with size here.') AS trend, max(run_uid) AS run_uid
  FROM ends
 GROUP BY comparability_key, protocol, context, "precision"
HAVING count(DISTINCT model) > 1
 ORDER BY device LIKE 'NVIDIA%' DESC, device, "precision" <> 'fp32', "precision", context;
