-- sentence: Compute dtype: {model} in {precision} on {ranks} ranks ({backend}, {device}), where weights are gathered and multiplied in bf16 and masters,
--   norms and moments stay fp32, passes the same certificate; a step takes {time_ms} ms, {speedup} times as fast as in fp32.
-- experiment: fsdp
-- fills: *
-- columns: model|1|s|left; precision|1|code|left; ranks|1|d|right; backend|1|code|left; device|1|s|left; time_ms|ms|ci(low_ms, high_ms)|right;
--   speedup|×|ratio(least, most)|right
SELECT v.params ->> '$.model' AS model, v.params ->> '$.precision' AS "precision", v.world_size AS ranks, v.backend, v.device, v.time_ms, v.low_ms, v.high_ms,
       f.time_ms / v.time_ms AS speedup, f.low_ms / v.high_ms AS least, f.high_ms / v.low_ms AS most, max(v.run_uid, f.run_uid) AS run_uid
  FROM v_measured v
  JOIN v_measured f ON f.experiment = v.experiment AND f.implementation = v.implementation AND f.world_size = v.world_size AND f.is_good
                   AND f.comparability_key = v.comparability_key AND f.protocol = v.protocol AND f.params ->> '$.precision' = 'fp32'
                   AND json_remove(f.params, '$.precision') = json_remove(v.params, '$.precision')
 WHERE v.experiment = ?1 AND v.is_good AND v.world_size > 1 AND v.params ->> '$.precision' = 'bf16_fused'
   AND v.world_size = (SELECT count(*) FROM check_result k
                        WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' AND k.outcome = 'passed')
 ORDER BY v.params ->> '$.granularity' DESC, model, ranks, v.row_order;
