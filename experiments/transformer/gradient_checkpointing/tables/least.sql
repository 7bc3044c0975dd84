-- sentence: Lowest peak over N equal blocks: a checkpoint around blocks 1 to N contains one around 1 to N − 1, and so
--   on (`left_deep`): O(1) memory (one checkpoint, one block's activations) and O(N²) compute, N(N + 1)/2 = {deep}
--   block forwards at N = {blocks}. Nested halves take O(log N) memory ({streams} checkpoints) and O(N log N) compute
--   ({halving} forwards). On one level, one checkpoint per block takes O(N) memory and 2N − 1 = {every} forwards, √N
--   segments O(√N) memory and O(N) forwards.
-- experiment: gradient_checkpointing
-- command: syslab run checkpoint_schemes
-- fills: a
-- columns: blocks|1|d|right; deep|1|d|right; streams|1|d|right; halving|1|d|right; every|1|d|right
WITH t AS (
  SELECT v.params ->> '$.blocks' AS blocks, v.params ->> '$.scheme' AS scheme,
         f.value AS forwards, s.value AS streams, v.run_uid,
         row_number() OVER (PARTITION BY v.params ORDER BY v.run_order DESC, v.attempt_uid DESC) AS place
    FROM v_newest v
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'block_forwards'
    JOIN metric s ON s.attempt_id = v.attempt_id AND s.name = 'streams'
   WHERE v.experiment = 'checkpoint_schemes' AND v.task = 'measure' AND v.status = 'ok'
)
SELECT d.blocks, d.forwards AS deep, h.streams, h.forwards AS halving, e.forwards AS every, d.run_uid
  FROM t d
  JOIN t h ON h.blocks = d.blocks AND h.place = 1 AND h.scheme = 'halving'
  JOIN t e ON e.blocks = d.blocks AND e.place = 1 AND e.scheme = 'every'
 WHERE d.scheme = 'left_deep' AND d.place = 1
 ORDER BY d.blocks = 16 DESC, d.blocks DESC  -- as many as the sketch has
 LIMIT 1;
