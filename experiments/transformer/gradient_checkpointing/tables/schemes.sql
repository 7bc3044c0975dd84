-- title: Gradient checkpointing schemes
-- caption: Counted on a stack of blocks (`checkpoint_schemes`).
-- about streams, residuals: `streams` are checkpoints, c bytes each, and `residuals` the activations of blocks, R bytes
--   each.
-- experiment: gradient_checkpointing
-- command: syslab run checkpoint_schemes
-- fills: a
-- columns: blocks|1|d|right; scheme|1|code|left; forwards as block forwards|1|d|right; streams|1|d|right;
--   residuals|1|d|right; growth as held grows as|1|s|left; computed as computed grows as|1|s|left; status|1|status|left
-- note: `none`: no checkpointing; `every` and `sqrt`: one level, segments of 1 and ⌈√N⌉ blocks; `halving` and
--   `binomial`: nested; `left_deep` recomputes each block from the input.
SELECT v.params ->> '$.blocks' AS blocks, v.params ->> '$.scheme' AS scheme,
       f.value AS forwards, s.value AS streams, r.value AS residuals,
       CASE v.params ->> '$.scheme' WHEN 'none' THEN 'N·R' WHEN 'every' THEN 'N·c + R' WHEN 'sqrt' THEN '√N·(c + R)'
                                    WHEN 'left_deep' THEN 'c + R' ELSE 'log N·c + R' END AS growth,
       CASE v.params ->> '$.scheme' WHEN 'none' THEN 'N' WHEN 'every' THEN '2N' WHEN 'sqrt' THEN '2N'
                                    WHEN 'left_deep' THEN 'N²/2'
                                    WHEN 'halving' THEN 'N/2·log N' ELSE 'at most N/2·log N' END AS computed,
       v.status, v.message, v.run_uid
  FROM (SELECT n.*, row_number() OVER (PARTITION BY n.params
                                           ORDER BY n.status = 'ok' DESC, n.run_order DESC, n.attempt_uid DESC) AS place
          FROM v_newest n
         -- Counts are those of any machine and protocol.
         WHERE n.experiment = 'checkpoint_schemes' AND n.task = 'measure') v
  LEFT JOIN metric f ON f.attempt_id = v.attempt_id AND v.status <> 'error' AND f.name = 'block_forwards'
  LEFT JOIN metric s ON s.attempt_id = v.attempt_id AND v.status <> 'error' AND s.name = 'streams'
  LEFT JOIN metric r ON r.attempt_id = v.attempt_id AND v.status <> 'error' AND r.name = 'residuals'
 WHERE v.place = 1
 ORDER BY blocks, f.value, scheme;
