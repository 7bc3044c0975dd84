-- sentence: At once, each axis has its own condition: N_F ≤ 1 + B·W/C and N_T ≤ 1 + 3·F·W/(2C), so N ≤ (1 + B·W/C)(1 + 3·F·W/(2C)). With B = {tokens} and F = {d_ff} that is
--   {data} · {tensor} = {ranks} devices; the largest whole grid is {grid}.
-- experiment: fsdp_tp_calcs
-- fills: c
-- columns: tokens|1|d|right; d_ff|1|d|right; alpha|1|.4g|right; beta|1|.4g|right; ranks|1|.4g|right; data|1|.4g|right; tensor|1|.4g|right; grid|1|s|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (ORDER BY v.params ->> '$.tokens' <> 65536, v.params ->> '$.tensor_ranks' DESC, v.params ->> '$.data_ranks' DESC, v.attempt_id DESC) AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status = 'ok' AND v.params ->> '$.element_bytes' = 2
)
SELECT params ->> '$.tokens' AS tokens, params ->> '$.d_ff' AS d_ff, (found ->> '$.forward_limit_overlapped_data') - 1 AS alpha,
       (found ->> '$.forward_limit_overlapped_tensor') - 1 AS beta, found ->> '$.forward_limit_overlapped' AS ranks, found ->> '$.forward_limit_overlapped_data' AS data,
       found ->> '$.forward_limit_overlapped_tensor' AS tensor, printf('%d × %d', found ->> '$.forward_grid_overlapped_data', found ->> '$.forward_grid_overlapped_tensor') AS grid, run_uid
  FROM t
 WHERE place = 1;
