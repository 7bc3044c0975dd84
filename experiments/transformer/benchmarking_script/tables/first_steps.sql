-- sentence: Without warm-up the first step of {model} ({implementation}, {device}) takes {first} ms and the others
--   {median} ms, so the mean of {n} is {mean} ± {sd} ms. It is {steady_mean} ± {steady_sd} ms after five warm-up
--   steps{few}. The first step probably loads libraries and kernels and allocates memory.
-- experiment: benchmarking_script
-- fills: c
-- command: syslab run benchmarking_script --preset warmup --isolation case
-- columns: model|1|s|left; implementation|1|code|left; device|1|s|left; first|ms|.3g|right; median|ms|.3g|right;
--   n|1|d|right; mean|ms|.2g|right; sd|ms|.2g|right; steady_mean|ms|.4g|right; steady_sd|ms|.1g|right;
--   few|1|s|left
WITH t AS MATERIALIZED (
  SELECT v.*, v.params ->> '$.warmup' AS w, json_remove(v.params, '$.warmup') AS point, 1e3 * m.value AS mean,
         1e3 * d.value AS sd,
         1e3 * (SELECT x.value FROM series s JOIN sample x ON x.series_id = s.id
                 WHERE s.attempt_id = v.attempt_id AND s.name = 'time' AND s.unit = 's'
                 ORDER BY x.launch, x.rank, x.idx LIMIT 1) AS first
    FROM v_measured v
    JOIN metric m ON m.attempt_id = v.attempt_id AND m.name = 'time_mean'
    JOIN metric d ON d.attempt_id = v.attempt_id AND d.name = 'time_stddev'
   WHERE v.experiment = ?1 AND v.is_good
)
SELECT params ->> '$.model' AS model, implementation, device, first,
       median, n, mean, sd, steady_mean, steady_sd, few, run_uid
  FROM (SELECT c.params, c.implementation, c.device, c.first, c.time_ms AS median,
               c.n, c.mean, c.sd, s.mean AS steady_mean, s.sd AS steady_sd,
               coalesce((SELECT group_concat(printf(', %.4g ± %.2f after %s',
                                                    b.mean, b.sd, iif(b.w = 1, 'one', 'two')), '')
                           FROM (SELECT * FROM t ORDER BY w DESC) b
                          WHERE b.point = c.point AND b.implementation = c.implementation
                            AND b.comparability_key = c.comparability_key
                            AND b.protocol = c.protocol AND b.w IN (1, 2)), '') AS few,
               max(c.run_uid, s.run_uid) AS run_uid,
               row_number() OVER (PARTITION BY c.comparability_key, c.implementation
                                      ORDER BY c.first / c.time_ms DESC, c.attempt_uid) AS place
          FROM t c
          JOIN t s ON s.point = c.point AND s.implementation = c.implementation
                  AND s.comparability_key = c.comparability_key
                  AND s.protocol = c.protocol AND s.w = 5
         WHERE c.w = 0 AND c.facts ->> '$.isolation' = 'case')
 WHERE place = 1
 ORDER BY device, implementation;
