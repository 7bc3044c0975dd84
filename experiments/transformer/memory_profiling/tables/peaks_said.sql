-- sentence: Peaks of {model} in {precision} ({implementation}, {device}) by context: forward only {forward}; training step {step}.
-- experiment: memory_profiling
-- fills: b
-- columns: model|1|s|left; precision|1|s|left; implementation|1|code|left; device|1|s|left; forward|1|s|left; step|1|s|left
WITH t AS MATERIALIZED (
  SELECT v.params ->> '$.model' AS model, v.params ->> '$.context' AS context, v.params ->> '$.precision' AS "precision", v.params ->> '$.pass' AS pass,
         v.implementation, v.comparability_key, v.device, v.run_uid, v.message, v.status, v.row_order,
         (SELECT max(k.value) FROM metric k WHERE k.attempt_id = v.attempt_id AND k.name = 'peak_bytes') AS peak
    FROM v_measured v
   WHERE v.experiment = ?1 AND (v.is_good OR v.status = 'oom') AND v.params ->> '$.pass' IN ('forward', 'step')
),
said AS (
  SELECT *, printf('%s at %d', 
                   CASE WHEN status = 'oom' THEN 'out of memory (' || coalesce(message, 'no more was there') || ')'
                        WHEN peak >= 1073741824 THEN printf('%.3g GiB', peak / 1073741824) ELSE printf('%.4g MiB', peak / 1048576) END, context) AS text
    FROM t
   ORDER BY context
)
SELECT model, "precision", implementation, device, group_concat(iif(pass = 'forward', text, NULL), ', ') AS forward,
       group_concat(iif(pass = 'step', text, NULL), ', ') AS step, max(run_uid) AS run_uid
  FROM said
 GROUP BY model, "precision", implementation, comparability_key
HAVING count(iif(pass = 'step', 1, NULL)) > 0 AND count(iif(pass = 'forward', 1, NULL)) > 0
 ORDER BY device, "precision" <> 'fp32', "precision", min(row_order), count(*) DESC, model;
