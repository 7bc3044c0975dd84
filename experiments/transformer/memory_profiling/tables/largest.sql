-- title: Largest allocations of a forward pass
-- caption: Inference, each context of the largest model: the five largest allocation sizes, their number and origin;
--   equal layers are merged.
-- experiment: memory_profiling
-- fills: e
-- columns: model?|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; tag as for|1|code|left;
--   mib as each|MiB|.4g|right; times|1|d|right; category as is|1|s|left; device?|1|s|left
-- note: A score matrix takes B·H·T²·4 bytes in fp32, a residual-stream activation B·T·d·4. Parameters are allocated
--   before.
WITH chosen AS (
  SELECT v.*, row_number() OVER (PARTITION BY v.comparability_key, v.implementation,
                                              v.params ->> '$.context', v.params ->> '$.precision'
                                     ORDER BY p.value DESC, v.attempt_uid DESC) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.pass' = 'forward'
),
asked AS (
  SELECT c.attempt_id, c.params, c.implementation, c.device, c.run_uid, e.delta_bytes AS bytes, e.category,
         -- "layers.3.attn.qkv" as "layers.*.attn.qkv"
         iif(e.tag LIKE 'layers.%', 'layers.*' || substr(e.tag, 7 + instr(substr(e.tag, 8), '.')), e.tag) AS tag
    FROM chosen c
    JOIN mem_event e ON e.attempt_id = c.attempt_id AND e.delta_bytes > 0 AND e.t_ns > 0
   WHERE c.place = 1
),
ranked AS (
  SELECT *, count(*) AS times, row_number() OVER (PARTITION BY attempt_id ORDER BY bytes DESC, tag) AS place
    FROM asked
   GROUP BY attempt_id, tag, bytes
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, implementation, tag,
       bytes / 1048576.0 AS mib, times, category, device, run_uid
  FROM ranked
 WHERE place <= 5
 ORDER BY device, context, precision, implementation, place;
