-- sentence: ZeRO stage 1 reduce-scatters gradients and all-gathers new weights: 2Ψ(n − 1)/n elements a rank for Ψ
--   parameters, {zero1_sent}{zero1_by} for {model} on {ranks} ranks ({backend}, gradients {travelling}, {device}), as
--   much as plain DDP's all-reduce. Our sharding, by whole tensors, all-reduces gradients and broadcasts new weights,
--   3Ψ(n − 1)/n: {of_rank}. Memory in fp32 is the same: moments in parts, full gradients and weights on every rank. In
--   half precision ZeRO-1 also shards the fp32 master weights (4Ψ/n), which ours does not.
-- experiment: optimizer_state_sharding_accounting
-- fills: c
-- columns: model|1|s|left; precision|1|s|left; ranks|1|d|right; backend|1|code|left; travelling|1|s|left;
--   device|1|s|left; of_rank|GiB|.4b|right; zero1_sent|GiB|.4b|right; zero1_by|1|s|left; calls|1|d|right;
--   zero1_calls|1|d|right
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment IN (?1, 'optimizer_state_sharding')
)
SELECT v.model, v."precision", v.ranks, v.backend, iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS travelling,
       v.device, v.implementation, coalesce(v.bucket_mb, 25) AS bucket_mb,
       (v.metrics ->> '$.sent') / 1073741824.0 AS of_rank, CAST(v.metrics ->> '$.calls' AS INTEGER) AS calls,
       -- Where ZeRO 1 did not run: by its formula, of fp32 gradients and weights.
       coalesce(z.metrics ->> '$.sent', 2.0 / 3 * (v.metrics ->> '$.sent')) / 1073741824.0 AS zero1_sent,
       iif(z.point IS NULL, ' (calculated)', '') AS zero1_by,
       CAST(z.metrics ->> '$.calls' AS INTEGER) AS zero1_calls, v.run_uid
  FROM v
  LEFT JOIN v z ON z.point = v.point AND z.ranks = v.ranks
               AND z.comparability_key = v.comparability_key AND z.protocol IS v.protocol
               AND z.implementation = v.implementation AND z.experiment = v.experiment
               AND z.sharding = 'zero1' AND z.updates = 'at_end' AND z.is_good
 WHERE v.is_good AND v.sharding = 'optimizer' AND v.updates = 'at_end' AND (z.point IS NOT NULL OR v.wire = 'own')
 ORDER BY v.experiment <> ?1, v.model, v.batch, v.context, v."precision",
          v.ranks, v.row_order, v.wire <> 'own', v.wire, v.bucket_mb;
