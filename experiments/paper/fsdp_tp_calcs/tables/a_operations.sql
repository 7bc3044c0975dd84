-- sentence: Forward takes 6BDF FLOPs, 1/N of them on each of N = N₁·N₂ devices (N₁ for FSDP, N₂ for TP): B/N₁ tokens
--   and F/N₂ of the hidden dimension. On {data} × {tensor} devices: {forward} TFLOP.
-- experiment: fsdp_tp_calcs
-- fills: a
-- columns: tokens|1|d|right; d_model|1|d|right; d_ff|1|d|right; data|1|d|right; tensor|1|d|right; forward|1|.4g|right;
--   compute|1|.4g|right; overlapped|1|.4g|right; once_ranks|1|.4g|right; once_data|1|.4g|right;
--   once_tensor|1|.4g|right; once_grid|1|s|right; turn_ranks|1|.4g|right; turn_data|1|.4g|right;
--   turn_tensor|1|.4g|right; turn_grid|1|s|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (ORDER BY v.params ->> '$.tokens' <> 65536, v.params ->> '$.tensor_ranks' DESC,
                                     v.params ->> '$.data_ranks' DESC, v.attempt_id DESC) AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status = 'ok' AND v.params ->> '$.element_bytes' = 2
)
SELECT params ->> '$.tokens' AS tokens, params ->> '$.d_model' AS d_model,
       params ->> '$.d_ff' AS d_ff, params ->> '$.data_ranks' AS data,
       params ->> '$.tensor_ranks' AS tensor, 1e-12 * (found ->> '$.forward_flops') AS forward,
       1e3 * (found ->> '$.forward_compute') AS compute,
       1e3 * (found ->> '$.forward_communication_overlapped') AS overlapped,
       found ->> '$.forward_limit_overlapped' AS once_ranks,
       found ->> '$.forward_limit_overlapped_data' AS once_data,
       found ->> '$.forward_limit_overlapped_tensor' AS once_tensor,
       printf('%d × %d',
              found ->> '$.forward_grid_overlapped_data', found ->> '$.forward_grid_overlapped_tensor') AS once_grid,
       found ->> '$.forward_limit_serial' AS turn_ranks, found ->> '$.forward_limit_serial_data' AS turn_data,
       found ->> '$.forward_limit_serial_tensor' AS turn_tensor,
       printf('%d × %d', found ->> '$.forward_grid_serial_data', found ->> '$.forward_grid_serial_tensor') AS turn_grid,
       run_uid
  FROM t
 WHERE place = 1;
