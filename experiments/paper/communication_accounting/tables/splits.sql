-- title: Other splits of the same devices
-- caption: Calculated: the smallest compute-bound batch in tokens of the whole mesh for every X · Y. "never": the
--   tensor axis is communication-bound at any batch, F < Y·α/M_Y.
-- experiment: communication_accounting
-- columns: d_ff?|1|d|right; compute as C [TFLOP/s]?|1|.4g|right; link as W [GB/s]?|1|.4g|right; x as X|1|d|right;
--   y as Y|1|d|right; overlapped as axes in parallel|1|s|right; serial as axes in sequence|1|s|right;
--   status|1|status|left
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k
                WHERE k.attempt_id = v.attempt_id AND v.status <> 'error') AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens')
                                ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
)
SELECT params ->> '$.d_ff' AS d_ff, params ->> '$.compute_tflops' AS compute,
       params ->> '$.link_gbps' AS link, s.value ->> '$.x' AS x, s.value ->> '$.y' AS y,
       iif((s.value ->> '$.overlapped') IS NULL, 'never', printf('%d', s.value ->> '$.overlapped')) AS overlapped,
       iif((s.value ->> '$.serial') IS NULL, 'never', printf('%d', s.value ->> '$.serial')) AS serial,
       status, message, run_uid
  FROM t, json_each(t.facts, '$.splits') s
 WHERE place = 1
 ORDER BY d_ff, compute, link, t.attempt_id, x;
