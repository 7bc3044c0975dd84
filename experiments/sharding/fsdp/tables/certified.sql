-- sentence: {ranks}-rank FSDP gives bit-identical weights to single-process training: {toys}. After the measured steps of
--   {model} in {precision} ({batch} × {context} tokens, {backend}, gradients {travelling}, {device}, protocol {protocol}, {implementation},
--   gathered by {granularity}) gradient norms are identical on all ranks, and the bytes communicated are the planned ones. A rank holds {state} of
--   weights, gradients and moments, {formula} by the formula and {padding} of padding; gathered weights are freed after use, so that all of them together take {slots}.
-- experiment: fsdp
-- fills: *
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right; backend|1|code|left; travelling|1|s|left; device|1|s|left;
--   protocol|1|s|left; implementation|1|code|left; granularity|1|s|left; toys|1|s|left; state|MiB|.4b|right; formula|MiB|.4b|right; padding|B|.4b|right; slots|MiB|.4b|right
SELECT v.params ->> '$.model' AS model, v.params ->> '$.precision' AS "precision", v.params ->> '$.batch' AS batch,
       v.params ->> '$.context' AS context, v.world_size AS ranks, v.backend, coalesce('in ' || nullif(v.params ->> '$.wire', 'own'), 'uncompressed') AS travelling, v.device, v.protocol, v.implementation,
       v.params ->> '$.granularity' AS granularity,
       (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'state_bytes') / 1048576.0 AS state,
       (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'formula_bytes') / 1048576.0 AS formula,
       (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'slot_bytes') / 1048576.0 AS slots,
       (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'padding_bytes') AS padding,
       (SELECT substr(k.message, instr(k.message, '; ') + 2) FROM check_result k
         WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' LIMIT 1) AS toys, v.run_uid
  FROM v_measured v
 WHERE v.experiment = ?1 AND v.is_good AND v.world_size > 1
   AND v.world_size = (SELECT count(*) FROM check_result k
                        WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' AND k.outcome = 'passed')
 ORDER BY model, batch, context, "precision", ranks, v.row_order, granularity DESC, travelling;
