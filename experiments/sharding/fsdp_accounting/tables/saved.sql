-- sentence: {model} over {ranks} ranks, gathered by {granularity} ({device}): FSDP saves 8Ψ(1 − 1/{ranks}) = {saved}
--   over sharding the optimizer state alone, and {unsharded} over plain DDP ({travelling}). A rank holds {state} of
--   weights, gradients and moments, {expected} (16Ψ/{ranks} bytes for Ψ parameters), instead of 8Ψ +
--   8Ψ/{ranks} = {optimizer} and 16Ψ = {whole} by the same count.
-- experiment: fsdp_accounting
-- fills: a
-- columns: model|1|s|left; ranks|1|d|right; granularity|1|s|left; device|1|s|left; state|GiB|.4b|right;
--   padding|B|.4b|right; whole|GiB|.4b|right; optimizer|GiB|.4b|right; saved|GiB|.4b|right; unsharded|GiB|.4b|right;
--   slots|GiB|.4b|right; travelling|1|s|left; expected|1|s|left
WITH t AS (
  SELECT v.*, (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'state_bytes') AS state,
         (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'padding_bytes') AS padding,
         (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'slot_bytes') AS slots,
         (SELECT max(value) FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name = 'parameters') AS parameters
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.is_good AND v.world_size > 1
)
SELECT params ->> '$.model' AS model, world_size AS ranks,
       params ->> '$.granularity' AS granularity, device, state / 1073741824.0 AS state, padding,
       16 * parameters / 1073741824.0 AS whole,
       (8 * parameters + 8 * parameters / world_size) / 1073741824.0 AS optimizer,
       (8 * parameters + 8 * parameters / world_size - state) / 1073741824.0 AS saved,
       (16 * parameters - state) / 1073741824.0 AS unsharded,
       slots / 1073741824.0 AS slots,
       coalesce('in ' || nullif(params ->> '$.wire', 'own'), 'uncompressed') AS travelling,
       coalesce(iif(metrics ->> '$.peak_bytes' >= 1000 * 1048576,
                    printf('; the step peaks at %.4g GiB', (metrics ->> '$.peak_bytes') / 1073741824),
                    printf('; the step peaks at %.4g MiB', (metrics ->> '$.peak_bytes') / 1048576)), '') AS peak,
       iif(abs(state * world_size / (16.0 * parameters) - 1) < 0.001, 'as expected',
           printf('%.2g %% more than expected, because norms stay whole',
                  100 * (state * world_size / (16.0 * parameters) - 1))) AS expected, run_uid
  FROM t
 ORDER BY model, ranks, granularity DESC, row_order, travelling;
