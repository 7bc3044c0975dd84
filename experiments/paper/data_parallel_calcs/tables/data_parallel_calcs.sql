-- title: Data parallel calculations
-- caption: Calculated for one device with all weights and 1/N of the tokens.
-- about backward_limit: `limit`: largest N that is compute-bound, not rounded.
-- about forward_waits: `bound by`: the longer of the two at N devices.
-- experiment: data_parallel_calcs
-- columns: tokens as B?|1|d|right; d_model as D?|1|d|right; d_ff as F?|1|d|right;
--   element_bytes as bytes an element?|1|d|right; compute as C [TFLOP/s]?|1|.4g|right; link as W [GB/s]?|1|.4g|right;
--   ranks as N|1|d|right; forward_flops as forward [TFLOP]|1|.4g|right; forward_compute as compute [ms]|1|.4g|right;
--   forward_sent as sends [MB]|1|.4g|right; forward_communication as communication [ms]|1|.4g|right;
--   forward_waits as bound by|1|s|left; backward_flops as backward [TFLOP]|1|.4g|right;
--   backward_compute as compute (backward) [ms]|1|.4g|right; backward_sent as sends (backward) [MB]|1|.4g|right;
--   backward_communication as communication (backward) [ms]|1|.4g|right;
--   backward_waits as bound by (backward)|1|s|left; backward_limit as limit (backward)|1|.4g|right;
--   status|1|status|left
-- note: Forward sends nothing. Backward all-reduces 3DF gradients of e bytes around a ring: 2(N − 1)/N · 3eDF bytes, at
--   e = 2 in 12DF(N − 1)/(N·W) seconds.
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k
                WHERE k.attempt_id = v.attempt_id AND v.status <> 'error') AS found
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
)
SELECT params ->> '$.tokens' AS tokens, params ->> '$.d_model' AS d_model,
       params ->> '$.d_ff' AS d_ff, params ->> '$.element_bytes' AS element_bytes,
       params ->> '$.compute_tflops' AS compute, params ->> '$.link_gbps' AS link, params ->> '$.ranks' AS ranks,
       1e-12 * (found ->> '$.forward_flops') AS forward_flops, 1e3 * (found ->> '$.forward_compute') AS forward_compute,
       1e-6 * (found ->> '$.forward_sent_bytes') AS forward_sent,
       1e3 * (found ->> '$.forward_communication') AS forward_communication,
       iif(found ->> '$.forward_communication' > found ->> '$.forward_compute',
           'communication', 'compute') AS forward_waits,
       found ->> '$.forward_limit' AS forward_limit, 1e-12 * (found ->> '$.backward_flops') AS backward_flops,
       1e3 * (found ->> '$.backward_compute') AS backward_compute,
       1e-6 * (found ->> '$.backward_sent_bytes') AS backward_sent,
       1e3 * (found ->> '$.backward_communication') AS backward_communication,
       iif(found ->> '$.backward_communication' > found ->> '$.backward_compute',
           'communication', 'compute') AS backward_waits,
       found ->> '$.backward_limit' AS backward_limit, status, message, run_uid
  FROM t
 ORDER BY tokens, d_model, d_ff, element_bytes, compute, link, ranks;
