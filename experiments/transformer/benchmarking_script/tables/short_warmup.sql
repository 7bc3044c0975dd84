-- sentence: After {w} warm-up {steps} the first measured step of {model} ({implementation}, {device}) {verdict} the
--   {others} after it.{why}
-- experiment: benchmarking_script
-- fills: c
-- command: syslab run benchmarking_script --preset warmup --isolation case
-- columns: w|1|s|left; steps|1|s|left; model|1|s|left; implementation|1|code|left; device|1|s|left; others|1|d|right;
--   verdict|1|s|left; why|1|s|left
WITH numbered AS (
  SELECT v.attempt_id, x.value, row_number() OVER (PARTITION BY v.attempt_id ORDER BY x.launch, x.rank, x.idx) AS step
    FROM v_measured v
    JOIN series s ON s.attempt_id = v.attempt_id AND s.name = 'time' AND s.unit = 's'
    JOIN sample x ON x.series_id = s.id
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.warmup' IN (1, 2) AND v.facts ->> '$.isolation' = 'case'
),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY attempt_id, step > 1 ORDER BY value) AS place,
         count(*) OVER (PARTITION BY attempt_id, step > 1) AS n
    FROM numbered
),
firsts AS (
  SELECT attempt_id, max(iif(step = 1, value, NULL)) AS first, max(iif(step > 1, value, NULL)) AS slowest,
         min(iif(step > 1, value, NULL)) AS fastest,
         -- the middle one, or the lower of the two in the middle
         max(iif(step > 1 AND place = (n + 1) / 2, value, NULL)) AS median, max(iif(step > 1, n, NULL)) AS others
    FROM ranked
   GROUP BY attempt_id
  HAVING others > 1
)
SELECT iif(w = 1, 'one', 'two') AS w, iif(w = 1, 'step', 'steps') AS steps, model, implementation, device, others,
       CASE WHEN first > 1.05 * slowest THEN printf('takes %.3g times the median of', ratio)
            WHEN ratio <= 1.05 THEN 'is no slower than'
            ELSE 'is no slower than the slowest of' END AS verdict,
       CASE WHEN first <= 1.05 * slowest AND ratio <= 1.05
              THEN iif(w = 1 AND implementation NOT LIKE 'graph%' AND device <> 'cpu'
                            AND NOT EXISTS (SELECT 1 FROM firsts x JOIN v_measured g ON g.attempt_id = x.attempt_id
                                             WHERE g.implementation LIKE 'graph%' AND g.device = shown.device),
                        ' A CUDA graph, recorded in the second step, would want two (not run).', '')
            WHEN first <= 1.05 * slowest THEN ' Steps vary as much without one-time costs.'
            WHEN implementation LIKE 'graph%'
              THEN ' The second step records the CUDA graph and the third replays it for the first time.'
            ELSE ' A cause can be memory allocated by the second step beside '
                 || 'what the first one left (not measured).' END AS why, run_uid
  FROM (SELECT v.params ->> '$.warmup' AS w, v.params ->> '$.model' AS model, v.implementation, v.device, f.*,
               f.first / f.median AS ratio, v.run_uid,
               row_number() OVER (PARTITION BY v.comparability_key, v.implementation, v.params ->> '$.warmup'
                                      ORDER BY f.first / f.slowest DESC, v.attempt_uid) AS place
          FROM firsts f
          JOIN v_measured v ON v.attempt_id = f.attempt_id) shown
 WHERE place = 1
 ORDER BY device, implementation, w;
