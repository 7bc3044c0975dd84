-- sentence: {model}, context {context}, {precision} ({implementation}, {device}): segments of {best} have the lowest
--   peak, {peak}{beside}.{kept}
-- experiment: gradient_checkpointing
-- fills: b
-- columns: implementation|1|code|left; model|1|s|left; context|1|d|right; precision|1|code|left; device|1|s|left;
--   best|1|s|right; peak|GiB|.4b|right; beside|1|s|left; kept|1|s|left
WITH unit(size, name) AS (VALUES (1073741824.0, 'GiB'), (1048576.0, 'MiB'), (1024.0, 'KiB'), (1.0, 'B')),
t AS MATERIALIZED (
  SELECT v.*, json_remove(v.params, '$.segment') AS point,
         v.params ->> '$.segment' AS segment, p.value AS bytes, f.value AS forwards
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'peak_bytes'
    JOIN metric f ON f.attempt_id = v.attempt_id AND f.name = 'block_forwards'
   WHERE v.experiment = ?1 AND v.is_good
),
-- Live bytes are counted, and do not depend on the GPU: a size that the machine with most of them has not is another's.
most AS (
  SELECT *, row_number() OVER (PARTITION BY point, implementation, protocol, segment
                                   ORDER BY many DESC, run_order DESC) AS nth
    FROM (SELECT *, count(*) OVER (PARTITION BY point, implementation, protocol, comparability_key) AS many FROM t
           WHERE segment > 0)
),
sizes AS (
  SELECT *, row_number() OVER (PARTITION BY point, implementation, protocol ORDER BY bytes, segment DESC) AS place,
         lag(segment) OVER up AS smaller, lag(bytes) OVER up AS smaller_bytes, lag(device) OVER up AS smaller_device,
         lead(segment) OVER up AS larger, lead(bytes) OVER up AS larger_bytes, lead(device) OVER up AS larger_device
    FROM most
   WHERE nth = 1
  WINDOW up AS (PARTITION BY point, implementation, protocol ORDER BY segment)
),
-- With what follows from sizes: c a stream, R a block, n blocks. Segments of k whole blocks hold (n/k − 1)·c + k·R.
reckoned AS (
  SELECT s.*, c.value AS stream, r.value AS block, n.value AS count, sqrt(n.value * c.value / r.value) AS optimum,
         iif(s.segment >= 1, (n.value / s.segment - 1) * c.value + s.segment * r.value, NULL) AS held_best,
         iif(s.smaller >= 1, (n.value / s.smaller - 1) * c.value + s.smaller * r.value, NULL) AS held_smaller,
         iif(s.larger >= 1, (n.value / s.larger - 1) * c.value + s.larger * r.value, NULL) AS held_larger
    FROM sizes s
    LEFT JOIN metric c ON c.attempt_id = s.attempt_id AND c.name = 'stream_bytes'
    LEFT JOIN metric r ON r.attempt_id = s.attempt_id AND r.name = 'block_bytes'
    LEFT JOIN metric n ON n.attempt_id = s.attempt_id AND n.name = 'layers'
   WHERE s.place = 1
)
SELECT b.implementation, b.params ->> '$.model' AS model,
       b.params ->> '$.context' AS context, b.params ->> '$.precision' AS precision,
       b.device, printf(iif(b.segment = 1, '%g block', '%g blocks'), b.segment) AS best, b.bytes / 1073741824 AS peak,
       -- The next sizes on either side that were measured.
       coalesce((SELECT printf(', versus %.4g %s for %g%s', b.smaller_bytes / size, name, b.smaller,
                               iif(b.smaller_device = b.device, '',
                                   ' (' || replace(replace(b.smaller_device, 'NVIDIA ', ''), ' 80GB HBM3', '') || ')'))
                   FROM unit WHERE b.smaller_bytes >= size ORDER BY size DESC LIMIT 1), '')
         || coalesce((SELECT printf(iif(b.smaller_bytes IS NULL, ', versus', ' and') || ' %.4g %s for %g%s',
                                    b.larger_bytes / size, name, b.larger,
                                    iif(b.larger_device = b.device,
                                        '', ' (' || replace(replace(b.larger_device, 'NVIDIA ', ''), ' 80GB HBM3', '')
                                            || ')'))
                        FROM unit WHERE b.larger_bytes >= size ORDER BY size DESC LIMIT 1), '') AS beside,
       CASE WHEN k.time_ms IS NULL AND o.case_id IS NOT NULL
              THEN ' Without checkpointing the step does not fit (' || o.message || '); with it a step takes '
            WHEN k.time_ms IS NULL THEN ''
            ELSE (SELECT printf(' Without checkpointing the peak is %.4g %s; with it a step takes ',
                                k.bytes / size, name) FROM unit WHERE k.bytes >= size ORDER BY size DESC LIMIT 1) END
         || CASE WHEN k.time_ms IS NULL THEN iif(o.case_id IS NULL, '', printf('%.3g s.', 1e-3 * b.time_ms))
                 WHEN b.low_ms IS NULL OR k.low_ms IS NULL
                   THEN printf('%.3g times as long (no interval).', b.time_ms / k.time_ms)
                 -- As the format ratio() reads.
                 ELSE printf('%.3g (%.3g … %.3g%s) times as long.', b.time_ms / k.time_ms, b.low_ms / k.high_ms,
                             b.high_ms / k.low_ms, iif(b.low_ms <= k.high_ms AND k.low_ms <= b.high_ms,
                                                       ', no measurable difference', '')) END AS kept,
       printf('%g', b.forwards) || iif(k.forwards IS NULL, '', printf(' instead of %g', k.forwards)) AS forwards,
       printf('%g', b.segment) AS best_size,
       -- For why.sql.
       b.count, b.stream / 1048576 AS stream, b.block / 1048576 AS block, b.optimum, b.held_best / 1048576 AS held_best,
       coalesce((SELECT printf(', %.4g %s for %g', b.held_smaller / size, name, b.smaller) FROM unit
                  WHERE b.held_smaller >= size ORDER BY size DESC LIMIT 1),
                '')
         || coalesce((SELECT printf(', %.4g %s for %g', b.held_larger / size, name, b.larger) FROM unit
                       WHERE b.held_larger >= size ORDER BY size DESC LIMIT 1), '') AS others,
       iif(b.optimum < 1, ', below one block; the formula holds for whole blocks only', '') AS whole,
       CASE WHEN b.held_best > min(coalesce(b.held_smaller, b.held_best), coalesce(b.held_larger, b.held_best))
              THEN 'By this model another size would hold less, so the measured peak includes something else.'
            WHEN b.optimum < 1
              THEN 'One block''s activations exceed all checkpoints, so longer segments cost more.'
            ELSE 'Shorter segments add checkpoints faster than they save activations; longer ones do the opposite.' END
         || iif(b.smaller = 0.5, ' Half a block doubles the checkpoints and saves nothing.', '') AS reason,
       max(b.run_uid, coalesce(k.run_uid, '')) AS run_uid
  FROM reckoned b
  LEFT JOIN t k ON k.point = b.point AND k.implementation = b.implementation
               AND k.comparability_key = b.comparability_key
               AND k.protocol = b.protocol AND k.segment = 0
  LEFT JOIN v_measured o ON o.experiment = ?1 AND o.status = 'oom' AND o.implementation = b.implementation
                        AND o.comparability_key = b.comparability_key
                        AND o.protocol = b.protocol AND o.params ->> '$.segment' = 0
                        AND json_remove(o.params, '$.segment') = b.point
 ORDER BY model, context, b.device, b.implementation;
