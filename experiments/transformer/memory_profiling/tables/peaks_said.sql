-- sentence: Peaks of {model} in {precision} ({implementation}, {device}): forward only {forward}; training step {step}.
-- experiment: memory_profiling
-- fills: b
-- columns: model|1|s|left; precision|1|s|left; implementation|1|code|left; device|1|s|left; forward|1|s|left;
--   step|1|s|left
WITH t AS MATERIALIZED (
  SELECT v.params ->> '$.model' AS model, v.params ->> '$.context' AS context,
         v.params ->> '$.precision' AS "precision", v.params ->> '$.pass' AS pass,
         v.implementation, v.comparability_key, v.device, v.run_uid, v.message, v.status, v.row_order,
         (SELECT max(k.value) FROM metric k WHERE k.attempt_id = v.attempt_id AND k.name = 'peak_bytes') AS peak
    FROM v_measured v
   WHERE v.experiment = ?1 AND (v.is_good OR v.status = 'oom') AND v.params ->> '$.pass' IN ('forward', 'step')
),
-- Of a pass: "12.8, 12.9, 13.4 GiB at T = 128, 256, 512", and what ran out of memory.
said AS (
  SELECT model, "precision", implementation, comparability_key, device, pass,
         count(*) AS cases, min(row_order) AS row_order, max(run_uid) AS run_uid,
         coalesce(group_concat(iif(status = 'oom', NULL, printf(iif(unit = 1073741824, '%.3g', '%.4g'), peak / unit)),
                               ', ') || iif(unit = 1073741824, ' GiB', ' MiB') || ' at T = '
                  || group_concat(iif(status = 'oom', NULL, context), ', ') || iif(max(status = 'oom'), ', ', ''), '')
           ||
         coalesce(group_concat(iif(status = 'oom', printf('out of memory at %d (%s)', context,
                                                          coalesce(substr(message, 1, instr(message || ',', ',') - 1),
                                                                   'no more was there')), NULL), ', '), '') AS text
    FROM (SELECT *, iif(max(peak) OVER (PARTITION BY model, "precision", implementation, comparability_key,
                                                     pass) >= 1073741824, 1073741824, 1048576) AS unit
            FROM t
           ORDER BY context)
   GROUP BY model, "precision", implementation, comparability_key, pass
)
SELECT model, "precision", implementation, device, max(iif(pass = 'forward', text, NULL)) AS forward,
       max(iif(pass = 'step', text, NULL)) AS step, max(run_uid) AS run_uid
  FROM said
 GROUP BY model, "precision", implementation, comparability_key
HAVING count(*) = 2
 ORDER BY device, "precision" <> 'fp32', "precision", min(row_order), sum(cases) DESC, model;
