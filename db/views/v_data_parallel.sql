-- A row a measured training step of several ranks: v_measured and, apart, what its case and its metrics say of the way in
-- which gradients travelled (`strategy`; `none`: not at all). Times of phases in ms, of the slowest rank at each step,
-- from the steps' own events: `forward`, `backward`, `exposed` (from the last gradient to the end of the last all-reduce),
-- `updating`; `communicating` is the sum over all-reduces, `overlapped` the share of it under the backward pass, in %, of the
-- rank that hid least. Where nothing is communicated (`is_silent`: strategy `none`, or one rank) all three are 0. `none_ms` is the
-- time of the same step without communication, a case of its own, and `over_none` what this one takes more; its bounds take both 95 % intervals at their worst, and are none of a row beside itself.
CREATE VIEW v_data_parallel AS
WITH t AS MATERIALIZED (
  -- Attempts from before there was an axis `backend` are what `auto` is now.
  SELECT *, json_remove(params, '$.strategy', '$.bucket_mb', '$.backend') || ' ' || coalesce(params ->> '$.backend', 'auto') AS point, metrics AS found,
         is_good AND (params ->> '$.strategy' = 'none' OR world_size = 1) AS is_silent
    FROM v_measured v
   WHERE params ->> '$.strategy' IS NOT NULL
)
SELECT t.*, t.params ->> '$.model' AS model, t.params ->> '$.batch' AS batch, t.params ->> '$.context' AS context,
       t.params ->> '$.precision' AS "precision", t.world_size AS ranks, t.params ->> '$.strategy' AS strategy,
       t.params ->> '$.bucket_mb' AS bucket_mb, none.time_ms AS none_ms,
       iif(t.is_good, t.time_ms - none.time_ms, NULL) AS over_none,
       iif(t.is_good AND none.attempt_id <> t.attempt_id, t.low_ms - none.high_ms, NULL) AS over_none_low,
       iif(t.is_good AND none.attempt_id <> t.attempt_id, t.high_ms - none.low_ms, NULL) AS over_none_high,
       1e3 * (t.found ->> '$.forward') AS forward, 1e3 * (t.found ->> '$.backward') AS backward,
       1e3 * (t.found ->> '$.update') AS updating,
       iif(t.is_silent, 0, 1e3 * (t.found ->> '$.exposed')) AS exposed,
       iif(t.is_silent, 0, 1e3 * (t.found ->> '$.communicating')) AS communicating,
       iif(t.is_silent, 0,
           100 * (SELECT min(m.value) FROM metric m WHERE m.attempt_id = t.attempt_id AND m.name = 'overlapped')) AS overlapped,
       t.found ->> '$.buckets' AS buckets, t.found ->> '$.gradient_bytes' AS gradient_bytes,
       1e3 * (t.found ->> '$.forecast_exposed') AS forecast_exposed
  FROM t
  LEFT JOIN t none ON none.experiment = t.experiment AND none.point = t.point AND none.world_size = t.world_size
                  AND none.comparability_key = t.comparability_key AND none.protocol IS t.protocol
                  AND none.implementation = t.implementation AND none.params ->> '$.strategy' = 'none' AND none.is_good;
