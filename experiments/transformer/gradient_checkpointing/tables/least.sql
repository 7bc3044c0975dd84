-- sentence: Of all nested schemes over N = {blocks} equal blocks `left_deep` has the lowest peak: a checkpoint around blocks 1 to N holds one
--   around 1 to N − 1, and so on, so that each block starts again from the input: one checkpoint and one block's activations (O(1)), {deep} block passes,
--   N(N + 1)/2. Recursive halving holds {streams} checkpoints, 1 + ⌈log₂ N⌉, for {halving} passes, O(N log N), optimal splits (`binomial`) need
--   {binomial}; checkpointing every block holds {blocks} for {every}, 2N − 1.
-- experiment: gradient_checkpointing
-- command: syslab run checkpoint_schemes
-- fills: a
-- columns: blocks|1|d|right; deep|1|d|right; streams|1|d|right; halving|1|d|right; binomial|1|d|right; every|1|d|right
WITH t AS (
  SELECT v.params ->> '$.blocks' AS blocks, v.params ->> '$.scheme' AS scheme, f.value AS forwards, s.value AS streams, v.run_uid,
         row_number() OVER (PARTITION BY v.params ORDER BY v.run_started_at DESC, v.attempt_uid DESC) AS place
    FROM v_newest v
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'block_forwards'
    JOIN metric s ON s.attempt_id = v.attempt_id AND s.name = 'streams'
   WHERE v.experiment = 'checkpoint_schemes' AND v.task = 'measure' AND v.status = 'ok'
)
SELECT d.blocks, d.forwards AS deep, h.streams, h.forwards AS halving, b.forwards AS binomial, e.forwards AS every, d.run_uid
  FROM t d
  JOIN t h ON h.blocks = d.blocks AND h.place = 1 AND h.scheme = 'halving'
  JOIN t b ON b.blocks = d.blocks AND b.place = 1 AND b.scheme = 'binomial'
  JOIN t e ON e.blocks = d.blocks AND e.place = 1 AND e.scheme = 'every'
 WHERE d.scheme = 'left_deep' AND d.place = 1
 ORDER BY d.blocks = 32 DESC, d.blocks DESC
 LIMIT 1;
