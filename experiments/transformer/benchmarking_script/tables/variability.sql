-- sentence: After five warm-up steps the relative standard deviation of a step has a median of {middle} % over {cases} configurations and a maximum
--   of {most} % ({model}, context {context}, {precision}, {implementation}: {mean} ± {sd} ms, protocol
--   {protocol}, {device}).
-- experiment: benchmarking_script
-- fills: b
-- columns: middle|%|.2g|right; cases|1|d|right; most|%|.2g|right; model|1|s|left; context|1|d|right; precision|1|s|left;
--   implementation|1|code|left; mean|ms|.4g|right; sd|ms|.2g|right; calm|1|d|right; protocol|1|s|left; device|1|s|left
WITH spread AS (
  SELECT v.*, 1e3 * m.value AS mean, 1e3 * d.value AS sd, 100 * d.value / m.value AS share,
         row_number() OVER up AS place, count(*) OVER whole AS cases
    FROM v_measured v
    JOIN metric m ON m.attempt_id = v.attempt_id AND m.name = 'time_mean'
    JOIN metric d ON d.attempt_id = v.attempt_id AND d.name = 'time_stddev'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.warmup' >= 5
  WINDOW whole AS (PARTITION BY v.comparability_key, v.protocol),
         up AS (PARTITION BY v.comparability_key, v.protocol ORDER BY d.value / m.value, v.attempt_uid)
)
SELECT max(iif(place = (cases + 1) / 2, share, NULL)) AS middle, cases, max(iif(place = cases, share, NULL)) AS most,
       max(iif(place = cases, params ->> '$.model', NULL)) AS model, max(iif(place = cases, params ->> '$.context', NULL)) AS context,
       max(iif(place = cases, params ->> '$.precision', NULL)) AS precision,
       max(iif(place = cases, implementation, NULL)) AS implementation, max(iif(place = cases, mean, NULL)) AS mean,
       max(iif(place = cases, sd, NULL)) AS sd, sum(share < 2) AS calm, protocol, device, max(run_uid) AS run_uid
  FROM spread
 WHERE cases > 1
 GROUP BY comparability_key, protocol
 ORDER BY device, protocol;
