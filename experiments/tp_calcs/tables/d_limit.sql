-- sentence: Forward is bound by compute up to N = 1 + 3·F·W/(2C), backward, with twice the products and as large a message, up to N = 1 + 3·F·W/C: with F = {d_ff}, C = {compute} TFLOP/s
--   and W = {link} GB/s up to {forward} and {backward} devices, whatever the batch.
-- experiment: tp_calcs
-- fills: d
-- columns: d_ff|1|d|right; compute|1|.4g|right; link|1|.4g|right; forward|1|.4g|right; backward|1|.4g|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (ORDER BY v.params ->> '$.tokens' <> 65536, v.params ->> '$.ranks' <> 8, v.params ->> '$.ranks' DESC, v.attempt_id DESC) AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status = 'ok' AND v.params ->> '$.element_bytes' = 2
)
SELECT params ->> '$.d_ff' AS d_ff, params ->> '$.compute_tflops' AS compute, params ->> '$.link_gbps' AS link, found ->> '$.forward_limit' AS forward,
       found ->> '$.backward_limit' AS backward, run_uid
  FROM t
 WHERE place = 1;
