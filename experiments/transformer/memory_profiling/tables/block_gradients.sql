-- sentence: In backward the middle block of {model} ({precision}, {implementation}, {device}) produces {found} of
--   parameter gradients, {expected} (4d² + 3·d·d_ff + 2d values). At context {context} it frees its activations and
--   memory falls by {saved}, since gradients were allocated before{framework}.
-- experiment: memory_profiling
-- fills: f
-- columns: model|1|s|left; precision|1|s|left; implementation|1|code|left; device|1|s|left; found|MiB|.5b|right;
--   expected|1|s|left; context|1|d|right; saved|MiB|.4b|right; framework|1|s|left
WITH t AS (
  SELECT v.*, f.value AS found, e.value AS expected, w.value AS framework,
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                ORDER BY p.value DESC, v.params ->> '$.context' DESC,
                                         v.params ->> '$.precision' <> 'fp32', v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'block_gradient_bytes'
    JOIN metric e ON e.attempt_id = v.attempt_id AND e.name = 'expected_block_gradient_bytes'
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
    LEFT JOIN metric w ON w.attempt_id = v.attempt_id AND w.name = 'framework_block_bytes'
   WHERE v.experiment = ?1 AND v.is_good
),
kept AS (
  SELECT t.attempt_id, CAST(substr(e.tag, 8, instr(substr(e.tag, 8), '.') - 1) AS INTEGER) AS layer,
         sum(e.delta_bytes) AS saved
    FROM t
    JOIN mem_event e ON e.attempt_id = t.attempt_id AND e.category = 'saved activations'
                    AND e.delta_bytes > 0 AND e.tag LIKE 'layers.%'
   WHERE t.place = 1
   GROUP BY t.attempt_id, layer
),
middle AS (
  SELECT k.* FROM kept k WHERE k.layer = (SELECT (max(x.layer) + 1) / 2 FROM kept x WHERE x.attempt_id = k.attempt_id)
)
SELECT params ->> '$.model' AS model, params ->> '$.precision' AS precision,
       implementation, device, found / 1048576 AS found,
       iif(found = expected, 'as expected', printf('where %.5g MiB are expected', expected / 1048576)) AS expected,
       params ->> '$.context' AS context, saved / 1048576.0 AS saved,
       iif(framework IS NULL, '',
           printf('. Allocated in backward, as PyTorch does, they would leave a %s of %.4g MiB',
                  iif(saved < found, 'growth', 'fall'), abs(saved - found) / 1048576)) AS framework, run_uid
  FROM t
  JOIN middle ON middle.attempt_id = t.attempt_id
 WHERE place = 1
 ORDER BY device, implementation;
