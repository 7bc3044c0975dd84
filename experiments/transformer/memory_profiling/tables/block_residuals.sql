-- title: Activations saved by one block
-- caption: Tensors of the middle block that outlive the forward pass of a training step, by producing operation, with
--   their share of the block.
-- experiment: memory_profiling
-- fills: f
-- columns: model?|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; tensor|1|code|left;
--   mib as size|MiB|.4g|right; share|%|.3g|right; total as block|MiB|.4g|right;
--   predicted as block, predicted|MiB|.4g|right; baseline as baseline's block|MiB|.4g|right; device?|1|s|left
-- note: `residual`: the stream at a norm; `normalized`: a norm's output; `kept`: attention's score matrices (exp and
--   weights of `host_eager` and `eager`); `gate_up`: W1·x and W3·x; `gated`: the gate's output. `host`, `fused` and
--   `graph` recompute `normalized` and `gated`. `baseline's block` is calculated for the hand-out's model in PyTorch:
--   ten tensors of B·T·d, five of B·T·d_ff and two of B·H·T² in fp32.
WITH chosen AS (
  SELECT v.*, n.value AS parameters,
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation,
                                         v.params ->> '$.context', v.params ->> '$.precision'
                                ORDER BY n.value DESC, v.attempt_uid DESC) AS place
    FROM v_measured v
    JOIN metric n ON n.attempt_id = v.attempt_id AND n.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.pass' = 'step'
),
saved AS (
  SELECT c.attempt_id, CAST(substr(e.tag, 8, instr(substr(e.tag, 8), '.') - 1) AS INTEGER) AS layer,
         substr(e.tag, 8 + instr(substr(e.tag, 8), '.')) AS tensor, e.delta_bytes AS bytes
    FROM chosen c
    JOIN mem_event e ON e.attempt_id = c.attempt_id AND e.category = 'saved activations'
                    AND e.delta_bytes > 0 AND e.tag LIKE 'layers.%'
   WHERE c.place = 1
),
middle AS (
  SELECT s.*, sum(s.bytes) OVER (PARTITION BY s.attempt_id) AS total,
         row_number() OVER (PARTITION BY s.attempt_id ORDER BY s.bytes DESC, s.tensor) AS place
    FROM saved s
   WHERE s.layer = (SELECT (max(x.layer) + 1) / 2 FROM saved x WHERE x.attempt_id = s.attempt_id)
)
SELECT c.params ->> '$.model' AS model, c.params ->> '$.context' AS context,
       c.params ->> '$.precision' AS precision, c.implementation, m.tensor,
       m.bytes / 1048576.0 AS mib, 100.0 * m.bytes / m.total AS share, m.total / 1048576.0 AS total,
       (SELECT value FROM metric k
         WHERE k.attempt_id = c.attempt_id AND k.name = 'predicted_block_bytes') / 1048576 AS predicted,
       (SELECT value FROM metric k
         WHERE k.attempt_id = c.attempt_id AND k.name = 'framework_block_bytes') / 1048576 AS baseline,
       c.device, c.run_uid
  FROM middle m
  JOIN chosen c ON c.attempt_id = m.attempt_id
 WHERE m.place <= 8
 ORDER BY c.device, context, precision, c.implementation, m.place;
