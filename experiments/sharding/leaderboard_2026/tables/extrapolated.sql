-- sentence: Slices of {low} and {high} layers ({implementation}, {precision}, batch {batch}, context {context}, {gpu})
--   give {layer} ms a layer and {rest} ms for the rest: {layers} layers would take {whole} s on one GPU with enough
--   memory (linear extrapolation, not measured).
-- experiment: leaderboard_2026
-- command: syslab run leaderboard_2026 --preset slices
-- columns: low|1|d|right; high|1|d|right; implementation|1|code|left; precision|1|code|left; batch|1|d|right;
--   context|1|d|right; gpu|1|s|left; layer|1|.4g|right; rest|1|.4g|right; layers|1|d|right; whole|1|.3g|right
WITH t AS (
  SELECT v.*, json_remove(v.params, '$.layers') AS point, v.params ->> '$.layers' AS layers,
         first_value(v.params ->> '$.layers') OVER grown AS low, last_value(v.params ->> '$.layers') OVER grown AS high,
         first_value(v.time_ms) OVER grown AS low_ms_, last_value(v.time_ms) OVER grown AS high_ms_
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.is_good
     AND coalesce(v.role, '') NOT IN ('predicted', 'sharded') AND v.params ->> '$.layers' > 0
     AND v.params ->> '$.model' = '8B'
  WINDOW grown AS (PARTITION BY json_remove(v.params, '$.layers'), v.implementation, v.comparability_key, v.protocol
                       ORDER BY v.params ->> '$.layers' ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
)
SELECT low, high, implementation, params ->> '$.precision' AS precision,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context,
       device AS gpu, (high_ms_ - low_ms_) / (high - low) AS layer,
       low_ms_ - low * (high_ms_ - low_ms_) / (high - low) AS rest,
       34 AS layers,
       1e-3 * (low_ms_ + (34 - low) * (high_ms_ - low_ms_) / (high - low)) AS whole, max(run_uid) AS run_uid
  FROM t
 WHERE high > low AND layers = low
 GROUP BY point, implementation, comparability_key, protocol
 ORDER BY gpu, precision, implementation;
