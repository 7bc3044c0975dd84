-- sentence: {model} (context {context}, {precision}, {implementation}, {device}): forward takes {forward} ms, backward
--   {backward} and the optimizer {optimizer}. Backward / forward is {ratio}; matrix products alone give 2.{sum}
-- experiment: benchmarking_script
-- fills: b
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left;
--   forward|ms|.4g|right; backward|ms|.4g|right; optimizer|ms|.4g|right; ratio|×|ratio(ratio_low, ratio_high)|right;
--   sum|1|s|left
WITH parts AS (
  SELECT v.params, v.implementation, v.device, v.comparability_key, v.run_uid,
         f.value AS f, f.ci_low AS fl, f.ci_high AS fh, b.value AS b,
         b.ci_low AS bl, b.ci_high AS bh, o.value AS o, o.ci_low AS ol, o.ci_high AS oh,
         1e-3 * v.time_ms AS s, 1e-3 * v.low_ms AS sl, 1e-3 * v.high_ms AS sh,
         1e3 * coalesce(v.metrics ->> '$.forward_mean', f.value) AS forward,
         1e3 * coalesce(v.metrics ->> '$.backward_mean', b.value) AS backward,
         1e3 * coalesce(v.metrics ->> '$.optimizer_mean', o.value) AS optimizer,
         -- Smallest and largest model, each at the longest context in the simplest precision.
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                ORDER BY p.value, v.params ->> '$.context' DESC,
v.params ->> '$.precision' <> 'fp32', v.params, v.protocol) AS smallest,
         row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                ORDER BY p.value DESC, v.params ->> '$.context' DESC,
v.params ->> '$.precision' <> 'fp32', v.params, v.protocol) AS largest
    FROM v_measured v
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'forward'
    JOIN metric b ON b.attempt_id = v.attempt_id AND b.name = 'backward'
    JOIN metric o ON o.attempt_id = v.attempt_id AND o.name = 'optimizer'
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.warmup' >= 5
)
-- Means, as the table has them; the ratio is of the medians, and its bounds take their intervals at their worst.
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, implementation,
       device, forward, backward, optimizer, b / f AS ratio, bl / fh AS ratio_low, bh / fl AS ratio_high,
       -- Independent intervals add up by their squares.
       CASE WHEN s IS NULL THEN ' The whole step was not timed.'
            WHEN sl IS NULL OR fl IS NULL OR bl IS NULL OR ol IS NULL
              THEN printf(' The phases add up to %.3g ms beside a step of %.3g ms, '
                          || 'with too few samples for an interval.', 1e3 * (f + b + o), 1e3 * s)
            WHEN f + b + o > s + width AND f + b + o < 1.005 * s THEN ''
            ELSE printf(' The medians of the phases add up to %#.4g ms, %s.', 1e3 * (f + b + o),
                        CASE WHEN abs(f + b + o - s) <= width
                               THEN printf('within the noise of the whole step''s %#.4g ms', 1e3 * s)
                             WHEN f + b + o < s THEN printf('%.2g %% less than the whole step''s %#.4g ms',
                                                            100 * (1 - (f + b + o) / s), 1e3 * s)
                             ELSE printf('%.2g %% more than the whole step''s %#.4g ms%s',
                                         100 * ((f + b + o) / s - 1), 1e3 * s,
                                         iif(device = 'cpu', '', ', because synchronising stops one phase''s launches '
                                                                 || 'from overlapping the last')) END) END AS sum,
       run_uid
  FROM (SELECT *, sqrt((fh - fl) * (fh - fl) + (bh - bl) * (bh - bl) + (oh - ol) * (oh - ol)
                         + (sh - sl) * (sh - sl)) / 2 AS width FROM parts)
 WHERE smallest = 1 OR largest = 1
 ORDER BY device, implementation, smallest;
