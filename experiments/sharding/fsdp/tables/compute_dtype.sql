-- sentence: Compute dtype: in {precision} ({model}, {backend}, {device}) weights are gathered and multiplied in bf16, masters,
--   norms and moments stay fp32; toy models stay bit-identical. The hand-out's `tests/test_fsdp.py` passes in fp32 and fp16 on 2 ranks over NCCL and Gloo.
-- experiment: fsdp
-- fills: *
-- columns: model|1|s|left; precision|1|code|left; backend|1|code|left; device|1|s|left; waits|1|s|left
SELECT v.params ->> '$.model' AS model, v.params ->> '$.precision' AS "precision", v.world_size AS ranks, v.backend, v.device,
       -- Products shrink more than messages do; slots of gradients keep their dtype.
       iif((v.metrics ->> '$.exposed_forward') > 0.1 * (v.metrics ->> '$.forward') AND (v.metrics ->> '$.slot_bytes') < (f.metrics ->> '$.slot_bytes'),
           printf(' Forward then waits for gathers %.3g of %.3g ms (fp32: %.3g of %.3g): bf16 speeds up products more than messages.',
                  1e3 * (v.metrics ->> '$.exposed_forward'), 1e3 * (v.metrics ->> '$.forward'), 1e3 * (f.metrics ->> '$.exposed_forward'), 1e3 * (f.metrics ->> '$.forward')), '') AS waits,
       max(max(v.run_uid, f.run_uid)) AS run_uid
  FROM v_measured v
  JOIN v_certified k ON k.attempt_id = v.attempt_id
  JOIN v_measured f ON f.experiment = v.experiment AND f.implementation = v.implementation AND f.world_size = v.world_size AND f.is_good
                   AND f.comparability_key = v.comparability_key AND f.protocol = v.protocol AND f.params ->> '$.precision' = 'fp32'
                   AND json_remove(f.params, '$.precision') = json_remove(v.params, '$.precision')
 WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.precision' = 'bf16_fused'
 GROUP BY model, "precision", ranks, v.backend, v.device
 ORDER BY max(v.params ->> '$.granularity') DESC, model, ranks, min(v.row_order);
