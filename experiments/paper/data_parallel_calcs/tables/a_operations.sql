-- sentence: Each of N devices has B/N tokens. Forward is three products of 2BDF FLOPs, 6BDF/N a device; backward has
--   two products for each, 12BDF/N. With B = {tokens}, D = {d_model}, F = {d_ff}, N = {ranks}: {forward} and {backward}
--   TFLOP.
-- experiment: data_parallel_calcs
-- fills: a
-- columns: ranks|1|d|right; tried|1|d|right; tokens|1|d|right; d_model|1|d|right; d_ff|1|d|right; compute|1|.4g|right;
--   link|1|.4g|right; forward|1|.4g|right; backward|1|.4g|right; forward_ms|1|.4g|right; backward_ms|1|.4g|right;
--   forward_compute|1|.4g|right; backward_compute|1|.4g|right; forward_limit|1|.4g|right; backward_limit|1|.4g|right;
--   forward_devices|1|d|right; backward_devices|1|d|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (ORDER BY v.params ->> '$.tokens' <> 65536, v.params ->> '$.ranks' <> 8,
                                     v.params ->> '$.ranks' DESC, v.attempt_id DESC) AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status = 'ok' AND v.params ->> '$.element_bytes' = 2
)
SELECT params ->> '$.ranks' AS ranks, min(params ->> '$.ranks', 64) AS tried,
       params ->> '$.tokens' AS tokens, params ->> '$.d_model' AS d_model,
       params ->> '$.d_ff' AS d_ff, params ->> '$.compute_tflops' AS compute, params ->> '$.link_gbps' AS link,
       1e-12 * (found ->> '$.forward_flops') AS forward, 1e-12 * (found ->> '$.backward_flops') AS backward,
       1e3 * (found ->> '$.forward_communication') AS forward_ms,
       1e3 * (found ->> '$.backward_communication') AS backward_ms,
       1e3 * (found ->> '$.forward_compute') AS forward_compute,
       1e3 * (found ->> '$.backward_compute') AS backward_compute,
       found ->> '$.forward_limit' AS forward_limit, found ->> '$.backward_limit' AS backward_limit,
       CAST((found ->> '$.forward_limit') * (1 + 1e-12) AS INTEGER) AS forward_devices,
       CAST((found ->> '$.backward_limit') * (1 + 1e-12) AS INTEGER) AS backward_devices, run_uid
  FROM t
 WHERE place = 1;
