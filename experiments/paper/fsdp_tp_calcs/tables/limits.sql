-- title: FSDP + TP calculations: device limits
-- caption: Calculated: the largest compute-bound N in forward over all N₁ and N₂, by the formula, and the largest
--   integer grid, by search.
-- experiment: fsdp_tp_calcs
-- columns: tokens as B|1|d|right; d_model as D?|1|d|right; d_ff as F|1|d|right;
--   element_bytes as bytes an element?|1|d|right; compute as C [TFLOP/s]?|1|.4g|right; link as W [GB/s]?|1|.4g|right;
--   axes|1|s|left; limit_ranks as N|1|.4g|right; limit_data as N₁|1|.4g|right; limit_tensor as N₂|1|.4g|right;
--   grid as whole grid|1|s|right; grid_ranks as devices|1|d|right; status|1|status|left
-- note: With α = B·W/C and β = 3·F·W/(2C) (two bytes an element): in parallel (1 + α)(1 + β); in sequence (α + β +
--   αβ)²/(4αβ), where that gives N₁ ≥ 1 and N₂ ≥ 1.
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k
                WHERE k.attempt_id = v.attempt_id AND v.status <> 'error') AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.data_ranks', '$.tensor_ranks')
                                ORDER BY v.status <> 'ok', v.attempt_id) AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
),
readings(place, axes, name) AS (VALUES (1, 'in parallel', 'overlapped'), (2, 'in sequence', 'serial'))
SELECT params ->> '$.tokens' AS tokens, params ->> '$.d_model' AS d_model,
       params ->> '$.d_ff' AS d_ff, params ->> '$.element_bytes' AS element_bytes,
       params ->> '$.compute_tflops' AS compute, params ->> '$.link_gbps' AS link, axes,
       found ->> ('forward_limit_' || name) AS limit_ranks,
       found ->> ('forward_limit_' || name || '_data') AS limit_data,
       found ->> ('forward_limit_' || name || '_tensor') AS limit_tensor,
       printf('%d × %d',
              found ->> ('forward_grid_' || name || '_data'), found ->> ('forward_grid_' || name || '_tensor')) AS grid,
       (found ->> ('forward_grid_' || name || '_data')) * (found ->> ('forward_grid_' || name
                                                                      || '_tensor')) AS grid_ranks,
       status, message, run_uid
  FROM t CROSS JOIN readings r
 WHERE t.place = 1
 ORDER BY tokens, d_ff, d_model, element_bytes, compute, link, t.attempt_id, r.place;
