-- sentence: With {precision} a training step of {model} ({implementation}, {device}) peaks at {steps}{out}; inference
--   at {forwards}. {why}
-- experiment: memory_profiling
-- fills: c
-- command: syslab run memory_profiling --preset paper
-- columns: precision|1|s|left; model|1|s|left; implementation|1|code|left; device|1|s|left; steps|1|s|left;
--   forwards|1|s|left; out|1|s|left; why|1|s|left
WITH t AS (
  SELECT v.params ->> '$.model' AS model, v.params ->> '$.context' AS context, v.params ->> '$.precision' AS precision,
         v.params ->> '$.pass' AS pass, v.implementation, v.device,
         v.run_uid, p.value / 1048576 AS peak, n.value AS parameters,
         -- All that a pair must have in common.
         json_array(json_remove(v.params, '$.precision', '$.pass'), v.implementation,
                    v.world_size, v.protocol, v.comparability_key) AS point,
         json_array(json_remove(v.params, '$.precision', '$.pass', '$.context'), v.implementation,
                    v.world_size, v.protocol, v.comparability_key) AS of_contexts
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'peak_bytes'
    JOIN metric n ON n.attempt_id = v.attempt_id AND n.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
),
-- Inference fits at contexts at which a step does not.
alone AS (
  SELECT h.of_contexts, min(h.peak) AS least, max(h.peak) AS most,
         max(100 * (h.peak / f.peak - 1)) AS most_change, min(100 * (h.peak / f.peak - 1)) AS least_change,
         min(h.context) AS from_context, max(h.context) AS to_context, count(*) AS contexts, h.precision
    FROM t h
    JOIN t f ON f.point = h.point AND f.precision = 'fp32' AND f.pass = 'forward'
   WHERE h.precision <> 'fp32' AND h.pass = 'forward'
   GROUP BY h.of_contexts, h.precision
),
pair AS (
  SELECT h.precision, h.model, h.context, h.implementation, h.device, h.parameters, h.run_uid,
         100 * (h.peak / f.peak - 1) AS change, 100 * (hf.peak / ff.peak - 1) AS forward_change,
         h.peak - f.peak AS more, hf.peak - ff.peak AS forward_more, h.peak, hf.peak AS forward_peak,
         h.of_contexts, iif(max(f.peak) OVER (PARTITION BY h.of_contexts) >= 1000, 1024, 1) AS unit
    FROM t h
    JOIN t f  ON f.point = h.point AND f.precision = 'fp32' AND f.pass = 'step'
    JOIN t hf ON hf.point = h.point AND hf.precision = h.precision AND hf.pass = 'forward'
    JOIN t ff ON ff.point = h.point AND ff.precision = 'fp32' AND ff.pass = 'forward'
   WHERE h.precision LIKE '%16%' AND h.pass = 'step'
   ORDER BY h.context
)
SELECT precision, model, implementation, device,
       group_concat(printf('%.3g', peak / unit), ', ') || iif(unit = 1, ' MiB', ' GiB')
         || ' for T = ' || group_concat(context, ', ')
         || printf(' (%+.2g', max(change))
         || iif(count(*) > 1, printf(' to %+.2g', min(change)), '') || ' % on fp32)' AS steps,
       (SELECT printf('%.3g', a.least / unit) || iif(a.contexts > 1, printf(' to %.3g', a.most / unit), '')
                 || iif(unit = 1, ' MiB', ' GiB')
               || iif(a.contexts > 1, printf(' for T = %d to %d', a.from_context, a.to_context), '')
               || printf(' (%+.2g', a.most_change)
                 || iif(a.contexts > 1, printf(' to %+.2g', a.least_change), '') || ' %)'
          FROM alone a WHERE a.of_contexts = pair.of_contexts AND a.precision = pair.precision) AS forwards,
       coalesce((SELECT printf(', and is out of memory at %d as in fp32', max(o.params ->> '$.context'))
                   FROM v_measured o
                  WHERE o.experiment = ?1 AND o.status = 'oom' AND o.params ->> '$.pass' = 'step'
                    AND o.params ->> '$.precision' = pair.precision AND o.params ->> '$.model' = pair.model
                    AND EXISTS (SELECT 1 FROM v_measured f
                                 WHERE f.experiment = ?1 AND f.status = 'oom' AND f.params ->> '$.precision' = 'fp32'
                                   AND json_remove(f.params, '$.precision') = json_remove(o.params, '$.precision')
                                   AND f.comparability_key = o.comparability_key)
                 HAVING count(*) > 0), '') AS out,
       -- Autocast keeps a copy of the weights, two bytes a parameter at most; bf16_fused has it in the upper halves of
       -- the weights themselves.
       CASE WHEN precision LIKE '%_fused' THEN 'Kept activations shrink, and the bf16 weights are the '
                                               || 'upper halves of the fp32 ones: there is no copy.'
            WHEN max(max(more), max(forward_more)) <= 0
              THEN printf('Activations shrink by more than the half-precision copy of the '
                          || 'weights (up to %.4g MiB) adds.', 2 * parameters / 1048576)
            WHEN max(max(more), max(forward_more)) > 2 * parameters / 1048576
              THEN printf('The growth exceeds the half-precision copy of the weights (up to %.4g MiB); '
                          || 'the rest is not explained.', 2 * parameters / 1048576)
            ELSE printf('Autocast adds a half-precision copy of the weights (up to %s)%s.',
                        iif(2 * parameters >= 1000 * 1048576, printf('%.3g GiB', 2 * parameters / 1073741824),
                            printf('%.3g MiB', 2 * parameters / 1048576)),
                        iif(min(more) <= 0,
                            ', outweighed by smaller activations'
                            || iif(max(more) > 0, ' in training only at T = '
                                                  || group_concat(iif(more <= 0, context, NULL), ', '), ''),
                            ', more than activations save at '
                            || iif(count(*) > 1, 'these contexts', 'this context'))) END AS why,
       max(run_uid) AS run_uid
  FROM pair
 GROUP BY precision, model, implementation, device, of_contexts
 ORDER BY device, parameters, implementation, of_contexts;
