-- title: Compute-bound batch size
-- caption: Calculated for forward: tokens of the whole mesh and per device, with both axes communicating in parallel
--   (the longer counts) or in sequence (both count). `free`: any X and Y with the same product.
-- experiment: communication_accounting
-- columns: d_ff?|1|d|right; compute as C [TFLOP/s]?|1|.4g|right; link as W [GB/s]?|1|.4g|right;
--   x_links as M_X?|1|d|right; y_links as M_Y?|1|d|right; axes|1|s|left; choice|1|s|left; x as X|1|.4g|right;
--   y as Y|1|.4g|right; tokens|1|.6g|right; tokens_device as tokens a device|1|.4g|right; status|1|status|left
-- note: T_math = 4BDF/(XYC), T_fsdp = 4DF/(Y·W·M_X), T_tensor = 4BD/(X·W·M_Y), α = C/W. In parallel: B ≥ X·α/M_X where
--   F ≥ Y·α/M_Y. In sequence: B ≥ X·F·α/(M_X·(F − Y·α/M_Y)). Free: B ≥ XY·α²/(M_X·M_Y·F), four times that in sequence,
--   at X² = B/F · M_X/M_Y · XY.
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k
                WHERE k.attempt_id = v.attempt_id AND v.status <> 'error') AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens')
                                ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
),
readings(place, axes, choice, name) AS (
  VALUES (1, 'in parallel', 'as asked', 'batch_overlapped'), (2, 'in sequence', 'as asked', 'batch_serial'),
         (3, 'in parallel', 'free', 'free_batch_overlapped'),
         (4, 'in sequence', 'free', 'free_batch_serial')
)
SELECT params ->> '$.d_ff' AS d_ff, params ->> '$.compute_tflops' AS compute,
       params ->> '$.link_gbps' AS link, params ->> '$.fsdp_links' AS x_links,
       params ->> '$.tensor_links' AS y_links, axes, choice,
       coalesce(found ->> (name || '_x'), params ->> '$.fsdp_ranks') AS x,
       coalesce(found ->> (name || '_y'), params ->> '$.tensor_ranks') AS y, found ->> name AS tokens,
       (found ->> name) / ((params ->> '$.fsdp_ranks') * (params ->> '$.tensor_ranks')) AS tokens_device,
       status, message, run_uid
  FROM t CROSS JOIN readings r
 WHERE t.place = 1
 ORDER BY d_ff, compute, link, t.attempt_id, r.place;
