-- sentence: In forward of {model} (context {context}, {precision}, {implementation}, {device}) {name} takes the most
--   time, {share} % in {calls} launches ({operation}); {verdict}.
-- experiment: nsys_profile
-- fills: b
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left;
--   name|1|code|left; share|%|.3g|right; calls|1|d|right; operation|1|s|left; verdict|1|s|left
WITH chosen AS (
  SELECT v.attempt_id, row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                              ORDER BY p.value DESC, v.params ->> '$.context' DESC,
                                                       v.params ->> '$.precision' <> 'fp32',
                                                       v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.mode' <> 'forward'
),
-- A kernel is what the profiler shows: one name, whatever it works for.
named AS (
  SELECT k.attempt_id, k.params, k.implementation, k.device, k.run_uid,
         k.name, k.phase, sum(k.ms) AS ms, sum(k.calls_a_step) AS calls,
         replace(group_concat(DISTINCT k.operation), ',', ', ') AS operation
    FROM v_kernel k
    JOIN chosen c ON c.attempt_id = k.attempt_id AND c.place = 1
   WHERE k.phase IN ('forward', 'backward')
   GROUP BY k.attempt_id, k.name, k.phase
),
forward AS (
  SELECT *, 100 * ms / sum(ms) OVER (PARTITION BY attempt_id) AS share,
         row_number() OVER (PARTITION BY attempt_id ORDER BY ms DESC, name) AS place
    FROM named
   WHERE phase = 'forward'
),
both AS (
  SELECT attempt_id, name, row_number() OVER (PARTITION BY attempt_id ORDER BY sum(ms) DESC, name) AS place
    FROM named
   GROUP BY attempt_id, name
)
SELECT f.params ->> '$.model' AS model, f.params ->> '$.context' AS context,
       f.params ->> '$.precision' AS precision, f.implementation, f.device,
       f.name, f.share, f.calls, f.operation,
       iif(b.name = f.name, 'it is also the top kernel of forward + backward',
           'the top kernel of forward + backward is `' || b.name || '`') AS verdict, f.run_uid
  FROM forward f
  JOIN both b ON b.attempt_id = f.attempt_id AND b.place = 1
 WHERE f.place = 1
 ORDER BY f.device, f.implementation;
