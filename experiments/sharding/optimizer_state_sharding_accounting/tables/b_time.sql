-- title: Step time with and without optimizer state sharding
-- caption: Median step time with its 95 % interval, slowest rank.
-- about over_none: `over none`: cost over the unsharded step with equal buckets and overlap.
-- experiment: optimizer_state_sharding_accounting
-- fills: b
-- columns: model|1|s|left; @sizes; batch?|1|d|right; context?|1|d|right; precision?|1|s|left; ranks|1|d|right;
--   backend?|1|code|left; wire?|1|s|left; sharding|1|code|left; updates?|1|code|left;
--   bucket_mb as bucket limit?|MiB|d|right; implementation?|1|code|left; time_ms as time|ms|ci(low_ms, high_ms)|right;
--   forward|ms|.3g|right; backward|ms|.3g|right; updating as update|ms|.3g|right;
--   over_none as over none|ms|ci(over_none_low, over_none_high)|right; sent|B|d|right;
--   formula_sent as by formula|B|d|right; calls as operations|1|d|right; n|1|d|right; noise?|1|s|left;
--   protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: `batch` is the global batch. `wire`: dtype in which gradients are communicated; `own`: uncompressed. Phases
--   come from events in the step, each of its slowest rank. The rest of the step is the final all-gather, which
--   overlaps the next forward pass. `sent`: gradients and weights a rank sends in a step, on average; `by formula`:
--   without padding.
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
)
SELECT v.model, v.params ->> '$.d_model' AS d_model, v.params ->> '$.d_ff' AS d_ff, v.params ->> '$.layers' AS layers,
       v.params ->> '$.heads' AS heads, v.params ->> '$.vocab' AS vocab,
       v.batch, v.context, v."precision", v.ranks, v.backend, v.wire, v.sharding,
       v.updates, v.bucket_mb, v.implementation, v.time_ms, v.low_ms, v.high_ms,
       1e3 * (v.metrics ->> '$.forward') AS forward, 1e3 * (v.metrics ->> '$.backward') AS backward,
       1e3 * (v.metrics ->> '$.update') AS updating,
       iif(v.is_good, v.time_ms - n.time_ms, NULL) AS over_none,
       iif(v.is_good AND n.attempt_id <> v.attempt_id, v.low_ms - n.high_ms, NULL) AS over_none_low,
       iif(v.is_good AND n.attempt_id <> v.attempt_id, v.high_ms - n.low_ms, NULL) AS over_none_high,
       CAST(round(v.metrics ->> '$.sent') AS INTEGER) AS sent,
       CAST(round(v.metrics ->> '$.formula_sent') AS INTEGER) AS formula_sent, v.metrics ->> '$.calls' AS calls,
       v.n, v.noise, v.protocol, v.device, v.status, v.message, v.facts -> '$.needs' AS needs, v.run_uid
  FROM v
  LEFT JOIN v n ON n.point = v.point AND n.ranks = v.ranks
               AND n.comparability_key = v.comparability_key AND n.protocol IS v.protocol
               AND n.implementation = iif(v.is_mine OR v.implementation = 'torchs_own',
                                          'ours_in_torch', v.implementation) AND n.sharding = 'none' AND n.is_good
 WHERE v.status <> 'skipped'
 ORDER BY v.model, d_model, d_ff, layers, heads, vocab, v.batch, v.context, v."precision", v.ranks,
          v.row_order, v.wire <> 'own', v.wire, v.sharding <> 'none', v.sharding, v.updates, v.bucket_mb;
