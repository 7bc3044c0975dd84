-- sentence: {model} in {precision} on {ranks} ranks ({backend}, gradients {travelling}, {device}, {implementation}), buckets of {bucket_mb} MiB:
--   our sharding by whole parameters all-reduces gradients and broadcasts new weights, {sent} bytes a rank and step in {calls} operations. ZeRO
--   stage 1 reduce-scatters gradients and all-gathers new weights in the precision they are read in, {zero1_sent} bytes in {zero1_calls}; the ratio
--   is {ratio}, and plain DDP sends {none_sent}. Both shard the moments ({held_moments} and {zero1_moments} bytes on the fullest rank) and keep
--   full gradients on every rank.
-- experiment: optimizer_state_sharding_accounting
-- fills: c
-- columns: model|1|s|left; precision|1|s|left; ranks|1|d|right; backend|1|code|left; travelling|1|s|left; device|1|s|left; implementation|1|code|left; bucket_mb|MiB|d|right; sent|B|d|right; calls|1|d|right; zero1_sent|B|d|right;
--   zero1_calls|1|d|right; ratio|1|.3g|right; none_sent|B|d|right; held_moments|B|d|right; zero1_moments|B|d|right
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
)
SELECT v.model, v."precision", v.ranks, v.backend, iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS travelling, v.device, v.implementation, coalesce(v.bucket_mb, 25) AS bucket_mb,
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
