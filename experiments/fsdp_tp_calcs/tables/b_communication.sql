-- sentence: Each device gathers its 6DF/N_T bytes of weights over N_F devices and all-reduces 2BD/N_F bytes of partial sums over N_T. When both happen at once it takes
--   the longer of 6·D·F·(N_F − 1)/(N·W) and 4·B·D·(N_T − 1)/(N·W): on {data} × {tensor} devices {overlapped} ms, beside {compute} ms of computing.
-- experiment: fsdp_tp_calcs
-- fills: b
-- columns: data|1|d|right; tensor|1|d|right; overlapped|1|.4g|right; compute|1|.4g|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (ORDER BY v.params ->> '$.tokens' <> 65536, v.params ->> '$.tensor_ranks' DESC, v.params ->> '$.data_ranks' DESC, v.attempt_id DESC) AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status = 'ok' AND v.params ->> '$.element_bytes' = 2
)
SELECT params ->> '$.data_ranks' AS data, params ->> '$.tensor_ranks' AS tensor, 1e3 * (found ->> '$.forward_communication_overlapped') AS overlapped,
       1e3 * (found ->> '$.forward_compute') AS compute, run_uid
  FROM t
 WHERE place = 1;
