-- sentence: Other sizes by the profile ({gpu}, {implementation}, {precision}): {models}.
-- experiment: nsys_profile
-- fills: a
-- columns: gpu|1|s|left; implementation|1|code|left; precision|1|s|left; models|1|s|left
WITH t AS (
  SELECT v.params ->> '$.model' AS model, v.params ->> '$.context' AS context,
         v.params ->> '$.precision' AS "precision", v.implementation, v.device, v.protocol,
         1e3 * b.value AS ms, p.value AS parameters, v.run_uid,
         row_number() OVER (PARTITION BY v.params, v.implementation, v.device, v.protocol
                                ORDER BY v.run_order DESC, v.attempt_uid DESC) AS place
    FROM v_measured v
    JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'forward_busy'
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good AND NOT v.is_mine
),
-- "small 10.2, 20.5, 44.2 ms at T = 256, 512, 1024"
told AS (
  SELECT model, "precision", implementation, device, protocol,
         parameters, count(*) AS contexts, max(run_uid) AS run_uid,
         model || ' ' || group_concat(printf('%.3g', ms), ', ') || ' ms at T = ' || group_concat(context, ', ') AS text
    FROM (SELECT * FROM t WHERE place = 1 ORDER BY context)
   GROUP BY model, "precision", implementation, device, protocol
   ORDER BY parameters
)
SELECT replace(replace(device, 'NVIDIA ', ''), ' 80GB HBM3', '') AS gpu, implementation,
       "precision", group_concat(text, '; ') AS models, max(run_uid) AS run_uid
  FROM told
 GROUP BY "precision", implementation, device, protocol
HAVING sum(contexts) > 2
 ORDER BY device LIKE 'NVIDIA%' DESC, sum(contexts) DESC, device, implementation;
