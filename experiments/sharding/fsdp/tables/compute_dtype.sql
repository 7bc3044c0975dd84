-- sentence: Compute dtype: in {precision} ({model}, {ranks} ranks, {backend}, {device}) weights are gathered and multiplied in bf16, masters,
--   norms and moments stay fp32; it passes the same certificate. Tests `2026 fsdp trains` (`tests/e2e/parallel_official.py`) repeat the hand-out's on 2 Gloo ranks
--   in fp32, bf16 and, from PyTorch 2.1 on, fp16.
-- experiment: fsdp
-- fills: *
-- columns: model|1|s|left; precision|1|code|left; ranks|1|d|right; backend|1|code|left; device|1|s|left
SELECT v.params ->> '$.model' AS model, v.params ->> '$.precision' AS "precision", v.world_size AS ranks, v.backend, v.device, max(max(v.run_uid, f.run_uid)) AS run_uid
  FROM v_measured v
  JOIN v_certified k ON k.attempt_id = v.attempt_id
  JOIN v_measured f ON f.experiment = v.experiment AND f.implementation = v.implementation AND f.world_size = v.world_size AND f.is_good
                   AND f.comparability_key = v.comparability_key AND f.protocol = v.protocol AND f.params ->> '$.precision' = 'fp32'
                   AND json_remove(f.params, '$.precision') = json_remove(v.params, '$.precision')
 WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.precision' = 'bf16_fused'
 GROUP BY model, "precision", ranks, v.backend, v.device
 ORDER BY max(v.params ->> '$.granularity') DESC, model, ranks, min(v.row_order);
