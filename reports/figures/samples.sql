-- figure: trace
-- title: Raw samples of the noisiest measurements
-- caption: The four noisiest measurements (widest interval relative to the median), every timed sample in order; the
--   band is the median's 95 % interval.
-- x: sample|1|linear
-- y: time|ms|auto
-- middle: median, low, high
-- flag: flags
-- series: launch
-- panel: panel
-- optional: yes
WITH measured AS (
  SELECT t.attempt_id, t.case_id, t.implementation, t.is_mine,
         t.protocol, t.run_uid, m.value AS median, m.ci_low, m.ci_high,
         row_number() OVER (ORDER BY (m.ci_high - m.ci_low) / m.value DESC, t.attempt_uid) AS place
    FROM v_newest t
    JOIN metric m ON m.attempt_id = t.attempt_id AND m.name = 'time' AND m.rank = 0
   WHERE t.experiment = ?1 AND t.task = 'measure' AND t.status = 'ok'
     AND m.ci_low IS NOT NULL AND m.value > 0 AND m.n >= 8
),
-- Axes whose values differ between these cases: a panel's title need not tell the others.
telling AS (
  SELECT p.axis
    FROM measured
    JOIN v_param p ON p.case_id = measured.case_id
   GROUP BY p.axis
  HAVING count(DISTINCT p.value) > 1
)
SELECT row_number() OVER (PARTITION BY s.id, x.launch ORDER BY x.rank, x.idx) AS sample,
       1e3 * x.value AS time, 1e3 * median AS median, 1e3 * ci_low AS low, 1e3 * ci_high AS high, x.flags,
       'launch ' || x.launch AS launch,
       implementation || iif(is_mine, ' (mine)', '') ||
       coalesce((SELECT ', ' || group_concat(p.axis || ' ' || p.value, ', ') FROM v_param p
                  WHERE p.case_id = m.case_id AND p.axis IN (SELECT axis FROM telling)), '') AS panel, run_uid
  FROM measured m
  JOIN series s ON s.attempt_id = m.attempt_id AND s.name = 'time' AND s.unit = 's'
  JOIN sample x ON x.series_id = s.id
 WHERE m.place <= 4
 ORDER BY m.place, x.launch, sample;
