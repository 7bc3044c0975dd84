-- sentence: Fused by hand (`fused`) instead of op by op (`eager`), context {context}, {precision} ({device}): forward
--   is {forward} times as fast, a step with AdamW {step} times.{trend}
-- experiment: torch_compile
-- command: syslab run benchmarking_script --impl eager,fused
-- fills: b
-- columns: context|1|d|right; precision|1|s|left; device|1|s|left; forward|1|s|left; step|1|s|left; trend|1|s|left
WITH timed AS MATERIALIZED (SELECT * FROM v_pass),
pair AS (
  SELECT f.model, f.context, f."precision", f.what, f.device, f.comparability_key, f.protocol, f.run_uid, f.parameters,
         f.model AS name, e.ms / f.ms AS gain, e.mean_ms - f.mean_ms AS saved,
         -- Of a step, what its optimizer gains.
         (SELECT a.mean_ms - b.mean_ms
            FROM timed a
            JOIN timed b ON b.attempt_id = f.attempt_id AND b.what = 'optimizer'
           WHERE a.attempt_id = e.attempt_id AND a.what = 'optimizer') AS saved_by_adamw
    FROM timed f
    JOIN timed e ON e.point = f.point AND e.what = f.what AND e.within = f.within
                AND e.comparability_key = f.comparability_key
                AND e.protocol = f.protocol AND e.implementation = 'eager' AND e.place = 1
   WHERE f.implementation = 'fused' AND f.place = 1 AND f.what IN ('forward', 'step')
),
ends AS (
  SELECT *, first_value(gain) OVER up AS first, last_value(gain) OVER up AS last,
         min(gain) OVER up AS least, row_number() OVER up AS nth, count(*) OVER up AS models
    FROM pair
  WINDOW up AS (PARTITION BY comparability_key, protocol, context, "precision", what ORDER BY parameters
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
)
SELECT e.context, e."precision", e.device,
       max(iif(what = 'forward' AND nth = 1,
               printf('%.3g (%s) to %.3g (%s)', first, name, last,
                      (SELECT x.name FROM ends x
                        WHERE x.comparability_key = e.comparability_key AND x.protocol = e.protocol
                          AND x.context = e.context AND x."precision" = e."precision"
                          AND x.what = 'forward' AND x.nth = x.models)),
               NULL)) AS forward,
       max(iif(what = 'step' AND nth = 1, printf('%.3g to %.3g', first, last), NULL)) AS step,
       CASE WHEN max(iif(what = 'step', first > 1.05 * last, 0))
              THEN iif(max(iif(what = 'step', last = e.least, 0)),
                       ' ' || max(iif(what = 'step' AND nth = models, name, '')) || ' gains least',
                       ' The gain falls with size') ||
                   coalesce((SELECT printf(', probably because fusion leaves matrix products alone, whose share of '
                                           || 'a step grows with size (profiles of %s: %s %%).', p.models, p.shares)
                               FROM v_matrix_products p
                              WHERE p.part = 'step' AND p.implementation = 'eager' AND p.context = e.context),
                            ', probably because more of its time is matrix products, '
                            || 'which fusion leaves alone (not measured).')
            WHEN max(iif(what = 'step', last > 1.05 * first, 0)) THEN ' The gain grows with size.'
            ELSE ' The gain hardly depends on size.' END
         || coalesce(max(iif(what = 'step' AND nth = models AND saved_by_adamw > 0 AND saved_by_adamw < saved,
                             printf(' Of the %.3g ms that a step of %s gains, %.3g are AdamW''s.',
                                    saved, name, saved_by_adamw), NULL)), '') AS trend, max(e.run_uid) AS run_uid
  FROM ends e
 GROUP BY e.comparability_key, e.protocol, e.context, e."precision"
HAVING count(DISTINCT e.model) > 1
 ORDER BY device LIKE 'NVIDIA%' DESC, device, "precision" <> 'fp32', "precision", context;
