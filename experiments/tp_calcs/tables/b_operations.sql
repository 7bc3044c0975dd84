-- sentence: Each of N devices has F/N of the hidden dimension and all tokens. Forward is three matrix products of 2BDF operations, so a device does 6BDF/N; backward has two products for each of them, 12BDF/N. With B = {tokens},
--   D = {d_model}, F = {d_ff} and N = {ranks}: {forward} and {backward} TFLOP.
-- experiment: tp_calcs
-- fills: b
-- columns: ranks|1|d|right; tokens|1|d|right; d_model|1|d|right; d_ff|1|d|right; forward|1|.4g|right; backward|1|.4g|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (ORDER BY v.params ->> '$.tokens' <> 65536, v.params ->> '$.ranks' <> 8, v.params ->> '$.ranks' DESC, v.attempt_id DESC) AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status = 'ok' AND v.params ->> '$.element_bytes' = 2
)
SELECT params ->> '$.ranks' AS ranks, params ->> '$.tokens' AS tokens, params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff,
       1e-12 * (found ->> '$.forward_flops') AS forward, 1e-12 * (found ->> '$.backward_flops') AS backward, run_uid
  FROM t
 WHERE place = 1;
