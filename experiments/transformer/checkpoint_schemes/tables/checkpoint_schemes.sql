-- title: Checkpointing schemes over equal blocks
-- caption: Counted while a stack of blocks runs forward and backward. A row ends ok if its gradients have the bits of
--   those without checkpoints, and its counts are those of the formulas (src/model/toy_stack.hpp).
-- experiment: checkpoint_schemes
-- columns: blocks|1|d|right; scheme|1|code|left; forwards as block forwards|1|d|right;
--   per_block as a block|1|.3g|right; streams|1|d|right; residuals|1|d|right; status|1|status|left
SELECT v.params ->> '$.blocks' AS blocks, v.params ->> '$.scheme' AS scheme, f.value AS forwards,
       f.value / (v.params ->> '$.blocks') AS per_block, s.value AS streams,
       r.value AS residuals, v.status, v.message, v.run_uid
  FROM (SELECT n.*, row_number() OVER (PARTITION BY n.params
                                           ORDER BY n.status = 'ok' DESC, n.run_order DESC, n.attempt_uid DESC) AS place
          FROM v_newest n
         WHERE n.experiment = ?1 AND n.task = 'measure') v  -- counts are those of any machine and protocol
  LEFT JOIN metric f ON f.attempt_id = v.attempt_id AND v.status <> 'error' AND f.name = 'block_forwards'
  LEFT JOIN metric s ON s.attempt_id = v.attempt_id AND v.status <> 'error' AND s.name = 'streams'
  LEFT JOIN metric r ON r.attempt_id = v.attempt_id AND v.status <> 'error' AND r.name = 'residuals'
 WHERE v.place = 1
 ORDER BY blocks, f.value, scheme;
