-- sentence: {model} over {ranks} ranks, gathered by {granularity}: a rank holds {state} bytes of weights, gradients and moments ({padding} of
--   padding), versus {whole} unsharded and {optimizer} with only the optimizer state sharded. FSDP saves {saved} bytes over the latter and needs
--   {slots} bytes for gathered units and full gradients ({travelling}).
-- experiment: fsdp_accounting
-- fills: a
-- columns: model|1|s|left; ranks|1|d|right; granularity|1|s|left; state|B|d|right; padding|B|d|right; whole|B|d|right; optimizer|B|d|right;
--   saved|B|d|right; slots|B|d|right; travelling|1|s|left
WITH t AS (
  SELECT v.*, (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'state_bytes') AS state,
         (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'padding_bytes') AS padding,
         (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'slot_bytes') AS slots,
         (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'parameters') AS parameters
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.is_good AND v.world_size > 1
)
SELECT params ->> '$.model' AS model, world_size AS ranks, params ->> '$.granularity' AS granularity, state, padding,
       16 * parameters AS whole, 8 * parameters + 8 * parameters / world_size AS optimizer,
       8 * parameters + 8 * parameters / world_size - state AS saved, slots, coalesce('in ' || nullif(params ->> '$.wire', 'own'), 'uncompressed') AS travelling, run_uid
  FROM t
 ORDER BY model, ranks, granularity DESC, row_order, travelling;
