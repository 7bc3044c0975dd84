-- title: What lowers the batch
-- caption: Predicted by arithmetic, not measured: the least batch that is bound by compute, in tokens of the whole mesh and of a device, with one thing changed.
-- experiment: communication_accounting
-- columns: d_ff?|1|d|right; compute as C [TFLOP/s]?|1|.4g|right; link as W [GB/s]?|1|.4g|right; lever|1|s|left; says as what changes|1|s|left; devices|1|d|right;
--   overlapped as axes at once|1|s|right; overlapped_each as a device|1|.4g|right; serial as axes in turn|1|s|right;
--   serial_each as a device (in turn)|1|.4g|right; status|1|status|left
-- note: What does not help: accumulating gradients. It makes the optimizer's batch larger, not the one whose gathers must hide.
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens') ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
)
SELECT params ->> '$.d_ff' AS d_ff, params ->> '$.compute_tflops' AS compute, params ->> '$.link_gbps' AS link, l.value ->> '$.lever' AS lever, l.value ->> '$.says' AS says,
       l.value ->> '$.devices' AS devices, iif((l.value ->> '$.overlapped') IS NULL, 'never', printf('%d', l.value ->> '$.overlapped')) AS overlapped,
       1.0 * (l.value ->> '$.overlapped') / (l.value ->> '$.devices') AS overlapped_each,
       iif((l.value ->> '$.serial') IS NULL, 'never', printf('%d', l.value ->> '$.serial')) AS serial,
       1.0 * (l.value ->> '$.serial') / (l.value ->> '$.devices') AS serial_each, status, message, run_uid
  FROM t, json_each(t.facts, '$.levers') l
 WHERE place = 1
 ORDER BY d_ff, compute, link, t.attempt_id, l.key;
