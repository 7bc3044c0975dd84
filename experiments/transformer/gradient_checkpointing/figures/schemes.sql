-- figure: areas
-- title: Gradient checkpointing: memory over a pass
-- caption: Checkpoints (streams, c each) and blocks' activations (residuals, R each) held at each pass of a block, of
--   16 equal blocks: each forward pass of (a) and a backward pass a block, counted while they run
--   (`checkpoint_schemes`). One scale for all: `none` keeps all, `every` checkpoints every block, `sqrt` has √N
--   segments, `halving` nests halves, `binomial` recomputes as few blocks as possible with the checkpoints of
--   `halving`.
-- experiment: gradient_checkpointing
-- command: syslab run checkpoint_schemes
-- x: passes_of_a_block|1|linear
-- y: streams_and_residuals_held|1|linear
-- series: kind
-- panel: panel
-- fills: a
-- note: From least to most recomputation.
WITH run AS (
  SELECT v.attempt_id, v.params ->> '$.scheme' AS scheme,
         v.params ->> '$.blocks' AS blocks, f.value AS forwards, v.run_uid,
         row_number() OVER (PARTITION BY v.params ORDER BY v.run_order DESC, v.attempt_uid DESC) AS place
    FROM v_newest v
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'block_forwards'
    JOIN series s ON s.attempt_id = v.attempt_id AND s.name = 'held_streams'
   WHERE v.experiment = 'checkpoint_schemes' AND v.task = 'measure' AND v.status = 'ok'
),
chosen AS (  -- a number of blocks that can be looked at: steps are seen, and there is something to nest
  SELECT * FROM run
   WHERE place = 1 AND blocks = (SELECT blocks FROM run ORDER BY abs(blocks - 16), blocks LIMIT 1)
)
SELECT x.idx + 1 AS passes_of_a_block, x.value AS streams_and_residuals_held, substr(s.name, 6) AS kind,
       c.scheme || ', ' || c.blocks || ' blocks' AS panel, 'ok' AS status, c.run_uid
  FROM chosen c
  JOIN series s ON s.attempt_id = c.attempt_id AND s.name IN ('held_streams', 'held_residuals')
  JOIN sample x ON x.series_id = s.id
 ORDER BY c.forwards, c.scheme, s.name = 'held_residuals', x.idx;
