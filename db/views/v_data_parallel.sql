-- A row a measured training step of several ranks: v_measured and, apart, what its case and its metrics say of the way
-- in which gradients travelled (`strategy`; `none`: not at all. `wire`: rounded to which dtype; `own`, and no such
-- axis: as they lie, which `sent` says in words). Of cases that differ in the word for one `backend` alone, `auto` and
-- what it is, the newest attempt has the row.
-- Times of phases in ms, of the slowest rank at each step,
-- from the steps' own events: `forward`, `backward`, `exposed` (from the last gradient to the end of the last
-- all-reduce), `updating`; `communicating` is the sum over all-reduces, `overlapped` the share of it under the backward
-- pass, in %, of the rank that hid least. Where nothing is communicated (`is_silent`: strategy `none`, or one rank) all
-- three are 0. `none_ms` is the time of the same step without communication, a case of its own, and `over_none` what
-- this one takes more; its bounds take both 95 % intervals at their worst, and are none of a row beside itself.
-- That case may be another experiment's, and have any `backend` and `wire`, since nothing travels in it: this
-- experiment's and the one with this row's words where there is one, else the newest; `none_from` says whether both
-- come from one run.
-- A class on ranks and torch's own have no such case: beside them stands that of `ours_in_torch`, which is around the
-- same module. `of_ours` is how many times as long they take as `ours_in_torch` does with the same strategy,
-- `of_ours_low` and `of_ours_high` with both intervals at their worst.
-- `alike` is all else that the cases have in common, `point` that with backend and wire.
CREATE VIEW v_data_parallel AS
WITH told AS (
  SELECT *, metrics AS found,
         iif(is_mine OR implementation = 'torchs_own', 'ours_in_torch', implementation) AS yardstick,
         coalesce(params ->> '$.wire', 'own') AS wire,
         json_remove(params, '$.strategy', '$.bucket_mb', '$.backend', '$.wire') AS alike
    FROM v_measured
   WHERE params ->> '$.strategy' IS NOT NULL
),
t AS MATERIALIZED (
  SELECT *, alike || ' ' || backend || ' ' || wire AS point,
         is_good AND (params ->> '$.strategy' = 'none' OR world_size = 1) AS is_silent
    FROM (SELECT *, row_number() OVER (PARTITION BY experiment, alike, backend, wire, params ->> '$.strategy',
                                                    coalesce(params ->> '$.bucket_mb', 0),
                                                    world_size, comparability_key, protocol, implementation
                                           ORDER BY status = 'skipped', run_order DESC, attempt_uid DESC) AS age
            FROM told)
   WHERE age = 1
),
beside AS MATERIALIZED (
  SELECT t.attempt_id, n.attempt_id AS none_id,
         row_number() OVER (PARTITION BY t.attempt_id
                                ORDER BY n.experiment = t.experiment DESC, n.point = t.point DESC,
                                         n.run_order DESC, n.attempt_uid DESC) AS place
    FROM t
    JOIN t n ON n.alike = t.alike AND n.world_size = t.world_size
            AND n.comparability_key = t.comparability_key
            AND n.protocol IS t.protocol AND n.implementation = t.yardstick
            AND n.params ->> '$.strategy' = 'none' AND n.is_good
),
ours AS MATERIALIZED (
  SELECT t.attempt_id, o.time_ms, o.low_ms, o.high_ms,
         row_number() OVER (PARTITION BY t.attempt_id
                                ORDER BY o.experiment = t.experiment DESC, o.point = t.point DESC,
                                         o.run_order DESC, o.attempt_uid DESC) AS place
    FROM t
    JOIN t o ON o.alike = t.alike AND o.world_size = t.world_size
            AND o.comparability_key = t.comparability_key
            AND o.protocol IS t.protocol AND o.implementation = t.yardstick
            AND o.params ->> '$.strategy' = t.params ->> '$.strategy'
            AND o.params ->> '$.bucket_mb' IS t.params ->> '$.bucket_mb' AND o.is_good
   WHERE t.is_good AND t.yardstick <> t.implementation
)
SELECT t.*, t.params ->> '$.model' AS model, t.params ->> '$.batch' AS batch, t.params ->> '$.context' AS context,
       t.params ->> '$.precision' AS "precision", t.world_size AS ranks, t.params ->> '$.strategy' AS strategy,
       t.params ->> '$.bucket_mb' AS bucket_mb,
       iif(t.wire = 'own', 'as they lie', 'in ' || t.wire) AS sent, none.time_ms AS none_ms,
       iif(coalesce(none.run_uid, t.run_uid) = t.run_uid, 'one run', 'different runs') AS none_from,
       iif(t.is_good, t.time_ms - none.time_ms, NULL) AS over_none,
       iif(t.is_good AND none.attempt_id <> t.attempt_id, t.low_ms - none.high_ms, NULL) AS over_none_low,
       iif(t.is_good AND none.attempt_id <> t.attempt_id, t.high_ms - none.low_ms, NULL) AS over_none_high,
       t.time_ms / ours.time_ms AS of_ours, t.low_ms / ours.high_ms AS of_ours_low,
       t.high_ms / ours.low_ms AS of_ours_high,
       1e3 * (t.found ->> '$.forward') AS forward, 1e3 * (t.found ->> '$.backward') AS backward,
       1e3 * (t.found ->> '$.update') AS updating,
       iif(t.is_silent, 0, 1e3 * (t.found ->> '$.exposed')) AS exposed,
       iif(t.is_silent, 0, 1e3 * (t.found ->> '$.communicating')) AS communicating,
       iif(t.is_silent, 0,
           100 * (SELECT min(m.value) FROM metric m
                   WHERE m.attempt_id = t.attempt_id AND m.name = 'overlapped' AND t.status <> 'error')) AS overlapped,
       t.found ->> '$.buckets' AS buckets, t.found ->> '$.gradient_bytes' AS gradient_bytes,
       1e3 * (t.found ->> '$.forecast_exposed') AS forecast_exposed
  FROM t
  LEFT JOIN beside b ON b.attempt_id = t.attempt_id AND b.place = 1
  LEFT JOIN t none ON none.attempt_id = b.none_id
  LEFT JOIN ours ON ours.attempt_id = t.attempt_id AND ours.place = 1;
