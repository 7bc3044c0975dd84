-- sentence: {model} in {precision}, {batch} × {context} tokens on {ranks} ranks ({backend}, {device}): a step takes
--   {time_ms} ms with sharded optimizer state and {none_ms} ms without ({verdict}), both with
--   gradients all-reduced under backward ({bucket_mb} MiB buckets). A rank updates 1/{ranks} of the parameters but must
--   then receive the others: the update with its broadcasts takes {updating} ms instead of {none_updating}, and a rank
--   sends {sent} a step instead of {none_sent}.
-- experiment: optimizer_state_sharding_accounting
-- fills: b
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right;
--   backend|1|code|left; device|1|s|left; bucket_mb|MiB|d|right; time_ms|ms|ci(low_ms, high_ms)|right;
--   none_ms|ms|ci(none_low, none_high)|right; verdict|1|s|left; updating|ms|.3g|right; none_updating|ms|.3g|right;
--   sent|GiB|.4b|right; none_sent|GiB|.4b|right
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
)
SELECT v.model, v."precision", v.batch, v.context, v.ranks, v.backend, v.device, coalesce(v.bucket_mb, 25) AS bucket_mb,
       v.time_ms, v.low_ms, v.high_ms, n.time_ms AS none_ms, n.low_ms AS none_low, n.high_ms AS none_high,
       CASE WHEN v.high_ms < n.low_ms THEN printf('%.2g %% less', 100 * (1 - v.time_ms / n.time_ms))
            WHEN v.low_ms > n.high_ms THEN printf('%.2g %% more', 100 * (v.time_ms / n.time_ms - 1))
            ELSE 'no measurable difference' END AS verdict,
       1e3 * (v.metrics ->> '$.update') AS updating, 1e3 * (n.metrics ->> '$.update') AS none_updating,
       (v.metrics ->> '$.sent') / 1073741824.0 AS sent,
       (n.metrics ->> '$.sent') / 1073741824.0 AS none_sent, max(v.run_uid, n.run_uid) AS run_uid
  FROM v
  JOIN v n ON n.point = v.point AND n.ranks = v.ranks
          AND n.comparability_key = v.comparability_key AND n.protocol IS v.protocol
          AND n.implementation = v.implementation AND n.sharding = 'none' AND n.is_good
 WHERE v.is_good AND v.sharding = 'optimizer'
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.wire <> 'own', v.wire, v.bucket_mb;
