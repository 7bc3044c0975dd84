-- sentence: {model} in {precision} on {ranks} ranks ({backend}, gradients {travelling}, {device}, {implementation}), buckets of {bucket_mb} MiB:
--   our sharding by whole parameters all-reduces gradients and broadcasts new weights, {sent} a rank and step in {calls} operations. ZeRO
--   stage 1 reduce-scatters gradients and all-gathers new weights in the precision they are read in, {zero1_sent} in {zero1_calls} (2Ψ against 3Ψ
--   by count, {ratio} times here); plain DDP sends {none_sent}. Both shard the moments ({held_moments} and {zero1_moments} on the fullest rank) and keep
--   full gradients on every rank.
-- experiment: optimizer_state_sharding_accounting
-- fills: c
-- columns: model|1|s|left; precision|1|s|left; ranks|1|d|right; backend|1|code|left; travelling|1|s|left; device|1|s|left; implementation|1|code|left; bucket_mb|MiB|d|right; sent|GiB|.4b|right; calls|1|d|right; zero1_sent|GiB|.4b|right;
--   zero1_calls|1|d|right; ratio|1|.3g|right; none_sent|GiB|.4b|right; held_moments|GiB|.4b|right; zero1_moments|GiB|.4b|right
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
)
SELECT v.model, v."precision", v.ranks, v.backend, iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS travelling, v.device, v.implementation, coalesce(v.bucket_mb, 25) AS bucket_mb,
       (v.metrics ->> '$.sent') / 1073741824.0 AS sent, CAST(v.metrics ->> '$.calls' AS INTEGER) AS calls,
       (z.metrics ->> '$.sent') / 1073741824.0 AS zero1_sent, CAST(z.metrics ->> '$.calls' AS INTEGER) AS zero1_calls,
       (v.metrics ->> '$.sent') / (z.metrics ->> '$.sent') AS ratio, (n.metrics ->> '$.sent') / 1073741824.0 AS none_sent,
       (v.metrics ->> '$.held_moments') / 1073741824.0 AS held_moments, (z.metrics ->> '$.held_moments') / 1073741824.0 AS zero1_moments, v.run_uid
  FROM v
  JOIN v z ON z.point = v.point AND z.ranks = v.ranks AND z.comparability_key = v.comparability_key AND z.protocol IS v.protocol
          AND z.implementation = v.implementation AND z.sharding = 'zero1' AND z.updates = 'at_end' AND z.is_good
  JOIN v n ON n.point = v.point AND n.ranks = v.ranks AND n.comparability_key = v.comparability_key AND n.protocol IS v.protocol
          AND n.implementation = v.implementation AND n.sharding = 'none' AND n.is_good
 WHERE v.is_good AND v.sharding = 'optimizer'
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.wire <> 'own', v.wire, v.bucket_mb;
