-- sentence: One block of {model} at context {context} ({precision}, {implementation}, {device}) keeps {total} for backward, the five largest being
--   {list}.
-- experiment: memory_profiling
-- fills: f
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left; total|MiB|.4b|right; list|1|s|left
WITH chosen AS (
  SELECT v.*, n.value AS parameters,
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation, v.params ->> '$.context', v.params ->> '$.precision'
                                ORDER BY n.value DESC, v.attempt_uid DESC) AS place
    FROM v_measured v
    JOIN metric n ON n.attempt_id = v.attempt_id AND n.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.pass' = 'step'
),
saved AS (
  SELECT c.attempt_id, CAST(substr(e.tag, 8, instr(substr(e.tag, 8), '.') - 1) AS INTEGER) AS layer,
         substr(e.tag, 8 + instr(substr(e.tag, 8), '.')) AS tensor, e.delta_bytes AS bytes
    FROM chosen c
    JOIN mem_event e ON e.attempt_id = c.attempt_id AND e.category = 'saved activations' AND e.delta_bytes > 0 AND e.tag LIKE 'layers.%'
   WHERE c.place = 1
),
middle AS (
  SELECT s.*, sum(s.bytes) OVER (PARTITION BY s.attempt_id) AS total, row_number() OVER (PARTITION BY s.attempt_id ORDER BY s.bytes DESC, s.tensor) AS place
    FROM saved s
   WHERE s.layer = (SELECT (max(x.layer) + 1) / 2 FROM saved x WHERE x.attempt_id = s.attempt_id)
)
SELECT model, context, "precision", implementation, device, total, group_concat(text, ', ') AS list, max(run_uid) AS run_uid
  FROM (SELECT c.attempt_id, c.params ->> '$.model' AS model, c.params ->> '$.context' AS context, c.params ->> '$.precision' AS "precision", c.implementation, c.device,
               m.total / 1048576.0 AS total, c.run_uid, printf('`%s` %.3g %%', m.tensor, 100.0 * m.bytes / m.total) AS text
          FROM middle m
          JOIN chosen c ON c.attempt_id = m.attempt_id
         WHERE m.place <= 5
         ORDER BY m.place)
 GROUP BY attempt_id
 ORDER BY device, "precision" <> 'fp32', "precision", context DESC, implementation;
