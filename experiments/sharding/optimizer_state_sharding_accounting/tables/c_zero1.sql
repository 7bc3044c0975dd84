-- sentence: {model} in {precision} on {ranks} ranks ({backend}, gradients {travelling}, {device}, {implementation}), in buckets of {bucket_mb} MiB: with whole parameters' owners a rank sends {sent} bytes of gradients and weights in a step,
--   in {calls} operations: all gradients are all-reduced, and then new weights are broadcast by their owners. ZeRO's first stage sends {zero1_sent}, in {zero1_calls}: it scatters
--   gradients to whoever has their moments and gathers new weights, rounded where products read them rounded. The first is {ratio} times as much; plain data parallelism sends {none_sent}. Both keep a share of the moments
--   ({held_moments} and {zero1_moments} bytes of the fullest rank); gradients are whole on every rank in both.
-- experiment: optimizer_state_sharding_accounting
-- fills: c
-- columns: model|1|s|left; precision|1|s|left; ranks|1|d|right; backend|1|code|left; travelling|1|s|left; device|1|s|left; implementation|1|code|left; bucket_mb|MiB|d|right; sent|B|d|right; calls|1|d|right; zero1_sent|B|d|right;
--   zero1_calls|1|d|right; ratio|1|.3g|right; none_sent|B|d|right; held_moments|B|d|right; zero1_moments|B|d|right
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
)
SELECT v.model, v."precision", v.ranks, v.backend, v.travelling, v.device, v.implementation, coalesce(v.bucket_mb, 25) AS bucket_mb,
       CAST(round(v.metrics ->> '$.sent') AS INTEGER) AS sent, CAST(v.metrics ->> '$.calls' AS INTEGER) AS calls,
       CAST(round(z.metrics ->> '$.sent') AS INTEGER) AS zero1_sent, CAST(z.metrics ->> '$.calls' AS INTEGER) AS zero1_calls,
       (v.metrics ->> '$.sent') / (z.metrics ->> '$.sent') AS ratio, CAST(round(n.metrics ->> '$.sent') AS INTEGER) AS none_sent,
       CAST(v.metrics ->> '$.held_moments' AS INTEGER) AS held_moments, CAST(z.metrics ->> '$.held_moments' AS INTEGER) AS zero1_moments, v.run_uid
  FROM v
  JOIN v z ON z.point = v.point AND z.ranks = v.ranks AND z.comparability_key = v.comparability_key AND z.protocol IS v.protocol
          AND z.implementation = v.implementation AND z.sharding = 'zero1' AND z.updates = 'at_end' AND z.is_good
  JOIN v n ON n.point = v.point AND n.ranks = v.ranks AND n.comparability_key = v.comparability_key AND n.protocol IS v.protocol
          AND n.implementation = v.implementation AND n.sharding = 'none' AND n.is_good
 WHERE v.is_good AND v.sharding = 'optimizer'
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.wire <> 'own', v.wire, v.bucket_mb;
