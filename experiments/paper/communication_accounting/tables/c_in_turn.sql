-- sentence: In sequence T_comm = T_FSDP + T_TP ≤ T_math is B ≥ X·F·α/(M_X·(F − Y·α/M_Y)): {each} tokens per device,
--   {tokens} over all {devices}.
--   With free X and Y, in sequence, {free} tokens, {free_each} per device, at X = {x}, Y = {y}.
-- experiment: communication_accounting
-- fills: c
-- columns: each|1|s|right; tokens|1|s|right; devices|1|d|right; free|1|s|right; free_each|1|s|right; x|1|.3g|right;
--   y|1|.3g|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens')
                                ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
)
SELECT
       printf('%,d', ceil((found ->> '$.batch_serial') * (1 - 1e-12))) AS tokens,
       printf('%,d', ceil((found ->> '$.batch_serial') * (1 - 1e-12)
                            / ((params ->> '$.fsdp_ranks') * (params ->> '$.tensor_ranks')))) AS each,
       (params ->> '$.fsdp_ranks') * (params ->> '$.tensor_ranks') AS devices,
       printf('%,d', ceil((found ->> '$.free_batch_serial') * (1 - 1e-12))) AS free,
       printf('%,d', ceil((found ->> '$.free_batch_serial') * (1 - 1e-12)
                            / ((params ->> '$.fsdp_ranks') * (params ->> '$.tensor_ranks')))) AS free_each,
       found ->> '$.free_batch_serial_x' AS x, found ->> '$.free_batch_serial_y' AS y, run_uid
  FROM t
 WHERE place = 1 AND status = 'ok' AND found ->> '$.batch_serial' IS NOT NULL
 ORDER BY devices, found ->> '$.batch_serial';
