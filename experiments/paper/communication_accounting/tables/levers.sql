-- title: Ways to reduce the compute-bound batch size
-- caption: Calculated: the smallest compute-bound batch, tokens of the whole mesh and per device, with one change.
-- experiment: communication_accounting
-- columns: d_ff?|1|d|right; compute as C [TFLOP/s]?|1|.4g|right; link as W [GB/s]?|1|.4g|right; lever|1|s|left;
--   says as what changes|1|s|left; devices|1|d|right; overlapped as axes in parallel|1|s|right;
--   overlapped_each as a device|1|.4g|right; serial as axes in sequence|1|s|right;
--   serial_each as a device (in sequence)|1|.4g|right; status|1|status|left
-- note: Gradient accumulation does not help: it enlarges the optimizer's batch, not the one that hides communication.
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k
                WHERE k.attempt_id = v.attempt_id AND v.status <> 'error') AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens')
                                ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status <> 'error'
)
SELECT params ->> '$.d_ff' AS d_ff, params ->> '$.compute_tflops' AS compute,
       params ->> '$.link_gbps' AS link, l.value ->> '$.lever' AS lever, l.value ->> '$.says' AS says,
       l.value ->> '$.devices' AS devices,
       iif((l.value ->> '$.overlapped') IS NULL, 'never', printf('%d', l.value ->> '$.overlapped')) AS overlapped,
       1.0 * (l.value ->> '$.overlapped') / (l.value ->> '$.devices') AS overlapped_each,
       iif((l.value ->> '$.serial') IS NULL, 'never', printf('%d', l.value ->> '$.serial')) AS serial,
       1.0 * (l.value ->> '$.serial') / (l.value ->> '$.devices') AS serial_each, status, message, run_uid
  FROM t, json_each(t.facts, '$.levers') l
 WHERE place = 1
 ORDER BY d_ff, compute, link, t.attempt_id, l.key;
