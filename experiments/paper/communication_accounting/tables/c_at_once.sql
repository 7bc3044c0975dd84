-- sentence: Compute-bound from {each} tokens per device (rounded up), {tokens} over all {devices} (X = {x}, Y = {y},
--   M_X = {x_links}, M_Y = {y_links}), with the axes in parallel. A block's two products take T_math = 4·B·D·F/(X·Y·C).
--   FSDP gathers 4DF/Y bytes of bf16 weights over X devices, T_FSDP = 4·D·F/(Y·W·M_X); tensor parallelism gathers and
--   reduces 2BD/X bytes of activations each, T_TP = 4·B·D/(X·W·M_Y). In parallel T_comm = max(T_FSDP, T_TP). T_FSDP ≤
--   T_math is B ≥ X·α/M_X with α = C/W = {alpha}, and T_TP ≤ T_math is F ≥ Y·α/M_Y, which holds for any B.
-- experiment: communication_accounting
-- fills: c
-- columns: alpha|1|.5g|right; each|1|strong|right; tokens|1|strong|right; devices|1|d|right; x|1|d|right; y|1|d|right;
--   x_links|1|d|right; y_links|1|d|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens')
                                ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
)
SELECT found ->> '$.alpha' AS alpha,
       printf('%,d', ceil((found ->> '$.batch_overlapped') * (1 - 1e-12))) AS tokens,
       printf('%,d', ceil((found ->> '$.batch_overlapped') * (1 - 1e-12)
                            / ((params ->> '$.fsdp_ranks') * (params ->> '$.tensor_ranks')))) AS each,
       (params ->> '$.fsdp_ranks') * (params ->> '$.tensor_ranks') AS devices,
       params ->> '$.fsdp_ranks' AS x, params ->> '$.tensor_ranks' AS y,
       params ->> '$.fsdp_links' AS x_links, params ->> '$.tensor_links' AS y_links, run_uid
  FROM t
 WHERE place = 1 AND status = 'ok' AND found ->> '$.batch_overlapped' IS NOT NULL
 ORDER BY devices, found ->> '$.batch_overlapped';
