-- title: What naive data parallel costs
-- caption: Median time of a whole step with its 95 % interval, of the slowest rank at each; `over none` is what it takes more than the
--   same step without communication. From the steps' own events: `communicating`, the sum over all-reduces, and `exposed`, from
--   the last gradient to the end of the last all-reduce. Only of steps whose strategy was certified to the bit on these ranks.
-- experiment: naive_ddp_benchmarking
-- fills: *
-- columns: model|1|s|left; batch?|1|d|right; context?|1|d|right; precision?|1|s|left; ranks|1|d|right; strategy|1|s|left;
--   bucket_mb as bucket limit?|MiB|d|right; implementation?|1|code|left; time_ms as time|ms|ci(low_ms, high_ms)|right; over_none as over none?|ms|.3g|right;
--   communicating|ms|.3g|right; exposed|ms|.3g|right; overlapped|%|.3g|right; buckets as all-reduces|1|d|right; gradient_bytes as bytes|B|d|right;
--   n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: `batch` is of all ranks together. Ranks that share cores do not hide communication: there is no time to hide it in.
WITH of_attempt AS (
  SELECT m.attempt_id, m.name, max(m.value) AS value
    FROM metric m
    JOIN v_newest n ON n.attempt_id = m.attempt_id AND n.experiment = ?1
   WHERE m.rank >= 0 OR m.name IN ('communicating', 'exposed')
   GROUP BY m.attempt_id, m.name
),
v AS MATERIALIZED (
  SELECT *, json_remove(params, '$.strategy', '$.bucket_mb') AS point FROM v_measured WHERE experiment = ?1
)
SELECT v.params ->> '$.model' AS model, v.params ->> '$.batch' AS batch, v.params ->> '$.context' AS context,
       v.params ->> '$.precision' AS precision, v.world_size AS ranks, v.params ->> '$.strategy' AS strategy,
       v.params ->> '$.bucket_mb' AS bucket_mb, v.implementation, v.time_ms, v.low_ms, v.high_ms,
       iif(v.is_good, v.time_ms - i.time_ms, NULL) AS over_none,
       iif(v.params ->> '$.strategy' = 'none', 0, 1e3 * c.value) AS communicating,
       iif(v.params ->> '$.strategy' = 'none', 0, 1e3 * e.value) AS exposed,
       iif(v.params ->> '$.strategy' = 'none', 0, 100 * o.value) AS overlapped, b.value AS buckets,
       g.value AS gradient_bytes, v.n, v.noise, v.protocol, v.device, v.status, v.message, v.run_uid
  FROM v
  LEFT JOIN v i ON i.point = v.point AND i.world_size = v.world_size AND i.comparability_key = v.comparability_key
               AND i.protocol IS v.protocol AND i.implementation = v.implementation AND i.params ->> '$.strategy' = 'none'
               AND i.is_good
  LEFT JOIN of_attempt c ON c.attempt_id = v.attempt_id AND c.name = 'communicating'
  LEFT JOIN of_attempt e ON e.attempt_id = v.attempt_id AND e.name = 'exposed'
  LEFT JOIN of_attempt o ON o.attempt_id = v.attempt_id AND o.name = 'overlapped'
  LEFT JOIN of_attempt b ON b.attempt_id = v.attempt_id AND b.name = 'buckets'
  LEFT JOIN of_attempt g ON g.attempt_id = v.attempt_id AND g.name = 'gradient_bytes'
 WHERE v.status <> 'skipped'
 ORDER BY model, batch, context, precision, ranks, v.row_order, strategy <> 'none', strategy <> 'naive', strategy, v.params ->> '$.bucket_mb';
