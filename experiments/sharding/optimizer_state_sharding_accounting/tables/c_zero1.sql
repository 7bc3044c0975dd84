-- sentence: Our sharding by whole parameters all-reduces gradients and broadcasts new weights: 3Ψ(n − 1)/n elements a rank and step for Ψ
--   parameters, {sent} for {model} on {ranks} ranks ({backend}, gradients {travelling}, {device}, {implementation}, buckets of {bucket_mb} MiB). ZeRO stage
--   1 reduce-scatters gradients and all-gathers new weights, 2Ψ(n − 1)/n: {zero1_sent}, {ratio} times less and as much as plain DDP's all-reduce. Memory in fp32 is the
--   same: sharded moments ({held_moments} and {zero1_moments}), full gradients and weights on every rank; ZeRO also shards the fp32 master copies of half-precision training.
-- experiment: optimizer_state_sharding_accounting
-- fills: c
-- columns: model|1|s|left; precision|1|s|left; ranks|1|d|right; backend|1|code|left; travelling|1|s|left; device|1|s|left; implementation|1|code|left; bucket_mb|MiB|d|right; sent|GiB|.4b|right; zero1_sent|GiB|.4b|right;
--   calls|1|d|right; zero1_calls|1|d|right; ratio|1|.3g|right; held_moments|GiB|.4b|right; zero1_moments|GiB|.4b|right
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment IN (?1, 'optimizer_state_sharding')
)
SELECT v.model, v."precision", v.ranks, v.backend, iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS travelling, v.device, v.implementation, coalesce(v.bucket_mb, 25) AS bucket_mb,
       (v.metrics ->> '$.sent') / 1073741824.0 AS sent, CAST(v.metrics ->> '$.calls' AS INTEGER) AS calls,
       (z.metrics ->> '$.sent') / 1073741824.0 AS zero1_sent, CAST(z.metrics ->> '$.calls' AS INTEGER) AS zero1_calls,
       (v.metrics ->> '$.sent') / (z.metrics ->> '$.sent') AS ratio,
       (v.metrics ->> '$.held_moments') / 1073741824.0 AS held_moments, (z.metrics ->> '$.held_moments') / 1073741824.0 AS zero1_moments, v.run_uid
  FROM v
  JOIN v z ON z.point = v.point AND z.ranks = v.ranks AND z.comparability_key = v.comparability_key AND z.protocol IS v.protocol
          AND z.implementation = v.implementation AND z.experiment = v.experiment AND z.sharding = 'zero1' AND z.updates = 'at_end' AND z.is_good
 WHERE v.is_good AND v.sharding = 'optimizer'
 ORDER BY v.experiment <> ?1, v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.wire <> 'own', v.wire, v.bucket_mb;
