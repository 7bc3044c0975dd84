-- sentence: Our sharding by whole parameters all-reduces gradients and broadcasts new weights: 3Ψ(n − 1)/n elements a rank and step for Ψ
--   parameters, {sent} for {shown} on {ranks} ranks ({backend}, gradients {travelling}, {device}). ZeRO stage
--   1 reduce-scatters gradients and all-gathers new weights, 2Ψ(n − 1)/n: {zero1_sent}, as much as plain DDP's all-reduce{of_large}. Memory in fp32 is the
--   same: moments in parts, full gradients and weights on every rank. In half precision ZeRO-1 also shards the fp32 master weights (4Ψ/n bytes instead of 4Ψ), which ours does not.
-- experiment: optimizer_state_sharding_accounting
-- fills: c
-- columns: shown|1|s|left; precision|1|s|left; ranks|1|d|right; backend|1|code|left; travelling|1|s|left; device|1|s|left; sent|GiB|.4b|right; zero1_sent|GiB|.4b|right;
--   calls|1|d|right; zero1_calls|1|d|right; of_large|1|s|left
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment IN (?1, 'optimizer_state_sharding')
)
SELECT coalesce(x.model, v.model) AS model, v.model AS shown, v."precision", v.ranks, v.backend, iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS travelling, v.device, v.implementation, coalesce(v.bucket_mb, 25) AS bucket_mb,
       (v.metrics ->> '$.sent') / 1073741824.0 AS sent, CAST(v.metrics ->> '$.calls' AS INTEGER) AS calls,
       (z.metrics ->> '$.sent') / 1073741824.0 AS zero1_sent, CAST(z.metrics ->> '$.calls' AS INTEGER) AS zero1_calls,
       -- The large model's by the same formulas; of several, each hand-out's write-up keeps its own by the row's `model`.
       coalesce(printf(' (for %s %.4g instead of %.4g GiB)', x.model, 2.0 * (x.ranks - 1) / x.ranks * 4 * (x.metrics ->> '$.parameters') / 1073741824,
                       (x.metrics ->> '$.sent') / 1073741824), '') AS of_large, v.run_uid
  FROM v
  JOIN v z ON z.point = v.point AND z.ranks = v.ranks AND z.comparability_key = v.comparability_key AND z.protocol IS v.protocol
          AND z.implementation = v.implementation AND z.experiment = v.experiment AND z.sharding = 'zero1' AND z.updates = 'at_end' AND z.is_good
  LEFT JOIN v x ON x.experiment = ?1 AND x.is_good AND x.sharding = 'optimizer' AND x."precision" = 'fp32' AND x.wire = 'own' AND x.model <> v.model
 WHERE v.is_good AND v.sharding = 'optimizer'
 ORDER BY v.experiment <> ?1, v.model, x.model DESC, v.batch, v.context, v."precision", v.ranks, v.row_order, v.wire <> 'own', v.wire, v.bucket_mb;
