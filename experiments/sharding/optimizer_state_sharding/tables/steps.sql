-- title: Optimizer state sharding
-- caption: Median step time with its 95 % interval, slowest rank. Phases are each of its slowest rank and may add up to
--   more than the step.
-- about sent: `sent`: gradients and weights that a rank sends in a step, on average.
-- about calls: `calls`: in how many collectives.
-- about held_state: `state of a rank` includes the buckets that gradients pass through, which for so small a model can
--   outweigh what `zero2` saves.
-- experiment: optimizer_state_sharding
-- fills: *
-- columns: model|1|s|left; @sizes; batch?|1|d|right; context?|1|d|right; precision?|1|s|left; ranks|1|d|right;
--   backend?|1|code|left; wire?|1|s|left; sharding|1|code|left; updates?|1|code|left;
--   bucket_mb as bucket limit?|MiB|d|right; implementation?|1|code|left; time_ms as time|ms|ci(low_ms, high_ms)|right;
--   forward|ms|.3g|right; backward|ms|.3g|right; updating as update|ms|.3g|right;
--   held_state as state of a rank|B|d|right; held_moments as its moments|B|d|right; sent|B|d|right; calls|1|d|right;
--   n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: `batch` is the global batch. `wire`: dtype in which gradients are communicated; `own`: uncompressed. Phases
--   come from events in the step, each of its slowest rank. The rest of the step is the final all-gather, which
--   overlaps the next forward pass. The state includes padding.
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
)
SELECT model, params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff, params ->> '$.layers' AS layers,
       params ->> '$.heads' AS heads, params ->> '$.vocab' AS vocab,
       batch, context, "precision", ranks, backend, wire, sharding, updates, bucket_mb, implementation, time_ms,
       low_ms, high_ms, 1e3 * (metrics ->> '$.forward') AS forward, 1e3 * (metrics ->> '$.backward') AS backward,
       1e3 * (metrics ->> '$.update') AS updating,
       CAST(metrics ->> '$.held_state' AS INTEGER) AS held_state,
       CAST(metrics ->> '$.held_moments' AS INTEGER) AS held_moments,
       CAST(round(metrics ->> '$.sent') AS INTEGER) AS sent, metrics ->> '$.calls' AS calls,
       n, noise, protocol, device, status, message, facts -> '$.needs' AS needs, run_uid
  FROM v
 WHERE status <> 'skipped'
 ORDER BY model, d_model, d_ff, layers, heads, vocab, batch, context, "precision", ranks,
          row_order, wire <> 'own', wire, sharding <> 'none', sharding, updates, bucket_mb;
