-- title: Benchmarking script: less warm-up
-- caption: Ten steps after w warm-up steps: mean ± standard deviation (n − 1), the first three measured steps and the
--   median. Each row with less than five warm-up steps ran in a process of its own.
-- experiment: benchmarking_script
-- fills: c
-- command: syslab run benchmarking_script --preset warmup --isolation case
-- empty: Not measured in a process of its own; `syslab run benchmarking_script --preset warmup --isolation case` would
--   be: a reused worker has its libraries loaded by the case before.
-- columns: model|1|s|left; batch?|1|d|right; context?|1|d|right; precision?|1|s|left; mode?|1|s|left;
--   implementation|1|code|left; w|1|d|right; step|ms|ci(step_low, step_high)|right; first|ms|.4g|right;
--   second|ms|.4g|right; third|ms|.4g|right; median|ms|.4g|right; first_over_median as first / median|×|.3g|right;
--   n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
WITH t AS MATERIALIZED (
  SELECT v.*, v.params ->> '$.warmup' AS w, json_remove(v.params, '$.warmup') AS point,
         metrics AS found,
         (SELECT json_group_array(value)
            FROM (SELECT x.value FROM series s JOIN sample x ON x.series_id = s.id
                   WHERE s.attempt_id = v.attempt_id AND v.ending IS NOT 'failed' AND s.name = 'time' AND s.unit = 's'
                   ORDER BY x.launch, x.rank, x.idx)) AS steps
    FROM v_measured v
   WHERE experiment = ?1 AND (params ->> '$.warmup' >= 5 OR facts ->> '$.isolation' = 'case')
),
-- Points where some case had less warm-up than the usual five steps.
studied AS (SELECT DISTINCT point, implementation, comparability_key, protocol FROM t WHERE w < 5),
s AS (
  SELECT t.*, 1e3 * (found ->> '$.time_mean') AS step, 1e3 * (found ->> '$.time_stddev') AS sd
    FROM t JOIN studied USING (point, implementation, comparability_key, protocol)
)
SELECT params ->> '$.model' AS model, params ->> '$.batch' AS batch, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, params ->> '$.mode' AS mode,
       implementation, w, step, step - sd AS step_low,
       step + sd AS step_high, 1e3 * (steps ->> '$[0]') AS first, 1e3 * (steps ->> '$[1]') AS second,
       1e3 * (steps ->> '$[2]') AS third, time_ms AS median,
       1e3 * (steps ->> '$[0]') / time_ms AS first_over_median, n, noise, protocol, device, status, message, run_uid
  FROM s
 ORDER BY found ->> '$.parameters', model, context, precision, mode, device, protocol, implementation, w;
