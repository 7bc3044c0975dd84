-- sentence: {model} in {precision}, {batch} rows of {context} tokens over {ranks} ranks ({backend}, gradients {travelling}, {device}, protocol {protocol}, {implementation}), gathered by {granularity}: a
--   network whose numbers are all exact, its weights in parts on these ranks, ends with the bits of one process on all rows, on every rank;
--   and behind the steps measured norms are the same on all ranks, bit for bit, and the bytes that travelled are the plan's. A rank holds {state}
--   bytes of weights, gradients and moments: the formula's {formula} and {padding} of padding.
-- experiment: fsdp
-- fills: *
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right; backend|1|code|left; travelling|1|s|left; device|1|s|left;
--   protocol|1|s|left; implementation|1|code|left; granularity|1|s|left; state|B|d|right; formula|B|d|right; padding|B|d|right
SELECT v.params ->> '$.model' AS model, v.params ->> '$.precision' AS "precision", v.params ->> '$.batch' AS batch,
       v.params ->> '$.context' AS context, v.world_size AS ranks, v.backend, coalesce('in ' || nullif(v.params ->> '$.wire', 'own'), 'as they lie') AS travelling, v.device, v.protocol, v.implementation,
       v.params ->> '$.granularity' AS granularity,
       (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'state_bytes') AS state,
       (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'formula_bytes') AS formula,
       (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'padding_bytes') AS padding, v.run_uid
  FROM v_measured v
 WHERE v.experiment = ?1 AND v.is_good AND v.world_size > 1
   AND v.world_size = (SELECT count(*) FROM check_result k
                        WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' AND k.outcome = 'passed')
 ORDER BY model, batch, context, "precision", ranks, v.row_order, granularity DESC, travelling;
