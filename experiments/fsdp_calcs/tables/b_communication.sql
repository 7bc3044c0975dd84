-- sentence: Forward gathers three matrices, 6DF bytes in bf16, of which a device sends (N − 1)/N: 6·D·F·(N − 1)/(N·W). Backward gathers them again and reduce-scatters
--   as many bytes of gradients: 12·D·F·(N − 1)/(N·W). With N = {ranks} and {link} GB/s that is {forward} ms and {backward} ms, beside {compute_forward} ms and {compute_backward} ms of computing.
-- experiment: fsdp_calcs
-- fills: b
-- columns: ranks|1|d|right; link|1|.4g|right; forward|1|.4g|right; backward|1|.4g|right; compute_forward|1|.4g|right; compute_backward|1|.4g|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (ORDER BY v.params ->> '$.tokens' <> 65536, v.params ->> '$.ranks' <> 8, v.params ->> '$.ranks' DESC, v.attempt_id DESC) AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status = 'ok' AND v.params ->> '$.element_bytes' = 2
)
SELECT params ->> '$.ranks' AS ranks, params ->> '$.link_gbps' AS link, 1e3 * (found ->> '$.forward_communication') AS forward,
       1e3 * (found ->> '$.backward_communication') AS backward, 1e3 * (found ->> '$.forward_compute') AS compute_forward,
       1e3 * (found ->> '$.backward_compute') AS compute_backward, run_uid
  FROM t
 WHERE place = 1;
