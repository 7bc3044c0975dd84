-- sentence: Compute dtype: in {precision} ({model}, {backend}, {device}) a step gathers {gathered} of weights, in fp32
--   {gathered_fp32}; a rank holds {state} of weights, gradients and moments, in fp32 {state_fp32}. On {toys}, {ranks}
--   ranks give weights bit-identical to one process after {steps}.
-- experiment: fsdp
-- fills: *
-- columns: model|1|s|left; precision|1|code|left; backend|1|code|left; device|1|s|left; gathered|MiB|.4b|right;
--   gathered_fp32|MiB|.4b|right; state|MiB|.4b|right; state_fp32|MiB|.4b|right; ranks|1|d|right; toys|1|s|left;
--   steps|1|s|left
SELECT v.params ->> '$.model' AS model, v.params ->> '$.precision' AS "precision",
       v.world_size AS ranks, v.backend, v.device,
       (v.metrics ->> '$.gathered_bytes') / 1048576.0 AS gathered,
       (f.metrics ->> '$.gathered_bytes') / 1048576.0 AS gathered_fp32,
       (v.metrics ->> '$.state_bytes') / 1048576.0 AS state, (f.metrics ->> '$.state_bytes') / 1048576.0 AS state_fp32,
       replace(k.toys, 'integer-valued ', '') AS toys, k.steps, max(max(v.run_uid, f.run_uid)) AS run_uid
  FROM v_measured v
  JOIN v_certified k ON k.attempt_id = v.attempt_id
  JOIN v_measured f ON f.experiment = v.experiment AND f.implementation = v.implementation
                   AND f.world_size = v.world_size AND f.is_good
                   AND f.comparability_key = v.comparability_key
                   AND f.protocol = v.protocol AND f.params ->> '$.precision' = 'fp32'
                   AND json_remove(f.params, '$.precision') = json_remove(v.params, '$.precision')
 WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.precision' = 'bf16_fused'
 GROUP BY model, "precision", ranks, v.backend, v.device
 ORDER BY max(v.params ->> '$.granularity') DESC, model, ranks, min(v.row_order);
