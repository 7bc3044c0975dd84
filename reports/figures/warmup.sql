-- figure: trace
-- title: Warm-up calls
-- caption: Warm-up calls in order, for the cases whose first call is slowest relative to the median; the line is the
--   median of the measured samples, the band its 95 % interval. The outputs are compared first, so one-time costs of
--   the process are excluded.
-- x: call|1|linear
-- y: time|ms|auto
-- middle: median, low, high
-- series: launch
-- panel: panel
-- optional: yes
WITH warmed AS (
  SELECT t.attempt_uid, t.case_id, t.implementation, t.is_mine, t.run_uid, m.value AS median, m.ci_low, m.ci_high,
         s.id AS series_id,
         (SELECT x.value FROM sample x WHERE x.series_id = s.id ORDER BY x.launch, x.rank, x.idx LIMIT 1) AS first
    FROM v_newest t
    JOIN metric m ON m.attempt_id = t.attempt_id AND m.name = 'time' AND m.rank = 0
    JOIN series s ON s.attempt_id = t.attempt_id AND s.name = 'warmup' AND s.unit = 's'
   WHERE t.experiment = ?1 AND t.task = 'measure' AND t.status = 'ok' AND m.value > 0
),
ranked AS (
  SELECT *, row_number() OVER (ORDER BY first / median DESC, attempt_uid) AS place FROM warmed
),
-- Axes whose values differ between these cases: a panel's title need not tell the others.
telling AS (
  SELECT p.axis
    FROM warmed
    JOIN v_param p ON p.case_id = warmed.case_id
   GROUP BY p.axis
  HAVING count(DISTINCT p.value) > 1
)
SELECT row_number() OVER (PARTITION BY x.series_id, x.launch ORDER BY x.rank, x.idx) AS call, 1e3 * x.value AS time,
       1e3 * median AS median, 1e3 * ci_low AS low, 1e3 * ci_high AS high, 'launch ' || x.launch AS launch,
       implementation || iif(is_mine, ' (mine)', '') ||
       coalesce((SELECT ', ' || group_concat(p.axis || ' ' || p.value, ', ') FROM v_param p
                  WHERE p.case_id = r.case_id AND p.axis IN (SELECT axis FROM telling)), '') AS panel, run_uid
  FROM ranked r
  JOIN sample x ON x.series_id = r.series_id
 WHERE r.place <= 4
 ORDER BY r.place, x.launch, call;
