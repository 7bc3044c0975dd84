-- title: Steps with the optimizer's state divided
-- caption: Median time of a whole step with its 95 % interval, of the slowest rank at each; `sent` is what a rank sends of gradients and weights in
--   a step, on average, in `operations` of them. Only of steps that were certified to the bit on these ranks.
-- experiment: optimizer_state_sharding
-- fills: *
-- columns: model|1|s|left; @sizes; batch?|1|d|right; context?|1|d|right; precision?|1|s|left; ranks|1|d|right; backend?|1|code|left; wire?|1|s|left; sharding|1|code|left; updates?|1|code|left;
--   bucket_mb as bucket limit?|MiB|d|right; implementation?|1|code|left; time_ms as time|ms|ci(low_ms, high_ms)|right; forward|ms|.3g|right; backward|ms|.3g|right; updating as update|ms|.3g|right;
--   held_state as state of a rank|B|d|right; held_moments as its moments|B|d|right;
--   sent|B|d|right; calls as operations|1|d|right; n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: `batch` is of all ranks together. `wire`: what gradients are rounded to before they travel; own: as they lie. The phases are by the steps' own events, each of
--   its slowest rank; on two ranks or more what of a step is none of theirs is what is still gathered behind it, which the next forward pass hides. The state is weights, gradients and moments, with padding and the slots that gradients pass through.
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
)
SELECT model, params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff, params ->> '$.layers' AS layers,
       params ->> '$.heads' AS heads, params ->> '$.vocab' AS vocab,
       batch, context, "precision", ranks, backend, wire, sharding, updates, bucket_mb, implementation, time_ms, low_ms, high_ms, 1e3 * (metrics ->> '$.forward') AS forward, 1e3 * (metrics ->> '$.backward') AS backward,
       1e3 * (metrics ->> '$.update') AS updating,
       CAST(metrics ->> '$.held_state' AS INTEGER) AS held_state, CAST(metrics ->> '$.held_moments' AS INTEGER) AS held_moments,
       CAST(round(metrics ->> '$.sent') AS INTEGER) AS sent, metrics ->> '$.calls' AS calls, n, noise, protocol, device, status, message, run_uid
  FROM v
 WHERE status <> 'skipped'
 ORDER BY model, d_model, d_ff, layers, heads, vocab, batch, context, "precision", ranks, row_order, wire <> 'own', wire, sharding <> 'none', sharding, updates, bucket_mb;
