-- title: FSDP + TP calculations
-- caption: Calculated for one device of an N₁ × N₂ grid, forward; communication of both axes in parallel (the longer
--   counts) or in sequence (both count).
-- about overlapped_waits: `bound by`: the longer of compute and communication.
-- experiment: fsdp_tp_calcs
-- columns: tokens as B?|1|d|right; d_model as D?|1|d|right; d_ff as F?|1|d|right;
--   element_bytes as bytes an element?|1|d|right; compute as C [TFLOP/s]?|1|.4g|right; link as W [GB/s]?|1|.4g|right;
--   data_ranks as N₁|1|d|right; tensor_ranks as N₂|1|d|right; flops as TFLOP|1|.4g|right;
--   compute_ms as compute [ms]|1|.4g|right; data_sent as sends, weights [MB]|1|.4g|right;
--   tensor_sent as sends, sums of y [MB]|1|.4g|right; overlapped as communication, in parallel [ms]|1|.4g|right;
--   overlapped_waits as bound by|1|s|left; serial as communication, in sequence [ms]|1|.4g|right;
--   serial_waits as bound by (in sequence)|1|s|left; status|1|status|left
-- note: With e = 2 bytes an element: 6BDF/N operations, 6DF(N₁ − 1)/N bytes of weights, 4BD(N₂ − 1)/N bytes of sums.
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k
                WHERE k.attempt_id = v.attempt_id AND v.status <> 'error') AS found
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
)
SELECT params ->> '$.tokens' AS tokens, params ->> '$.d_model' AS d_model,
       params ->> '$.d_ff' AS d_ff, params ->> '$.element_bytes' AS element_bytes,
       params ->> '$.compute_tflops' AS compute,
       params ->> '$.link_gbps' AS link, params ->> '$.data_ranks' AS data_ranks,
       params ->> '$.tensor_ranks' AS tensor_ranks, 1e-12 * (found ->> '$.forward_flops') AS flops,
       1e3 * (found ->> '$.forward_compute') AS compute_ms,
       1e-6 * (found ->> '$.forward_data_sent_bytes') AS data_sent,
       1e-6 * (found ->> '$.forward_tensor_sent_bytes') AS tensor_sent,
       1e3 * (found ->> '$.forward_communication_overlapped') AS overlapped,
       iif(found ->> '$.forward_communication_overlapped' > found ->> '$.forward_compute',
           'communication', 'compute') AS overlapped_waits,
       1e3 * (found ->> '$.forward_communication_serial') AS serial,
       iif(found ->> '$.forward_communication_serial' > found ->> '$.forward_compute',
           'communication', 'compute') AS serial_waits, status, message, run_uid
  FROM t
 ORDER BY tokens, d_model, d_ff, element_bytes, compute, link, data_ranks, tensor_ranks;
