-- sentence: In forward of {model} at context {context} ({precision}, {implementation}, {device}) the largest allocations are {list}. {origin}
-- experiment: memory_profiling
-- fills: e
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left; list|1|s|left; origin|1|s|left
WITH chosen AS (
  SELECT v.*, row_number() OVER (PARTITION BY v.comparability_key, v.implementation, v.params ->> '$.context', v.params ->> '$.precision'
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
),
told AS (
  SELECT *, max(params ->> '$.context') OVER (PARTITION BY device, implementation, params ->> '$.precision') AS longest,
         printf('`%s` (%d × %s)', replace(tag, 'layers.*.', ''), times, CASE WHEN bytes >= 1073741824 THEN printf('%.4g GiB', bytes / 1073741824.0) ELSE printf('%.4g MiB', bytes / 1048576.0) END) AS text
    FROM ranked
   WHERE place <= 3
   ORDER BY place
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context, params ->> '$.precision' AS "precision", implementation, device,
       group_concat(text, ', ') AS list,
       iif(max(tag LIKE '%attn.%') AND params ->> '$.context' >= 512,
           'Those of attention are its scores and weights, B·H·T² values each, which grow with the square of the context.',
           'They are named by the tensor that they hold.') AS origin, max(run_uid) AS run_uid
  FROM told
 WHERE params ->> '$.context' = longest
 GROUP BY attempt_id
 ORDER BY device, "precision" <> 'fp32', "precision", implementation;
