-- sentence: In turn, both times together must not pass that of computing: 3F(N_F − 1) + 2B(N_T − 1) ≤ 3BFW/C. The largest product is at N_F = (K + 3F + 2B)/(6F) and
--   N_T = (K + 3F + 2B)/(4B) with K = 3BFW/C, so N ≤ (K + 3F + 2B)²/(24BF), as long as neither falls below 1. With B = {tokens} and F = {d_ff} that is {data} · {tensor} = {ranks} devices; the
--   largest whole grid is {grid}.
-- experiment: fsdp_tp_calcs
-- fills: d
-- columns: tokens|1|d|right; d_ff|1|d|right; alpha|1|.4g|right; beta|1|.4g|right; ranks|1|.4g|right; data|1|.4g|right; tensor|1|.4g|right; grid|1|s|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (ORDER BY v.params ->> '$.tokens' <> 65536, v.params ->> '$.tensor_ranks' DESC, v.params ->> '$.data_ranks' DESC, v.attempt_id DESC) AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status = 'ok' AND v.params ->> '$.element_bytes' = 2
)
SELECT params ->> '$.tokens' AS tokens, params ->> '$.d_ff' AS d_ff, (found ->> '$.forward_limit_overlapped_data') - 1 AS alpha,
       (found ->> '$.forward_limit_overlapped_tensor') - 1 AS beta, found ->> '$.forward_limit_serial' AS ranks, found ->> '$.forward_limit_serial_data' AS data,
       found ->> '$.forward_limit_serial_tensor' AS tensor, printf('%d × %d', found ->> '$.forward_grid_serial_data', found ->> '$.forward_grid_serial_tensor') AS grid, run_uid
  FROM t
 WHERE place = 1;
