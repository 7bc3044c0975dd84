-- figure: lines
-- title: Time over the axis that varies most
-- caption: Median time with its 95 % interval.
-- x: x|1|auto
-- y: time|ms|auto
-- x_name: axis
-- interval: low, high
-- series: implementation
-- panel: panel, protocol, device
-- optional: yes
WITH measured AS MATERIALIZED (
  SELECT * FROM v_measured WHERE experiment = ?1 AND status NOT IN ('skipped', 'unsupported')
),
axis_of AS (
  SELECT j.key, count(DISTINCT j.value) AS n, min(j.type IN ('integer', 'real')) AS is_number
    FROM measured, json_each(measured.params) j WHERE time_ms IS NOT NULL GROUP BY j.key
),
-- Two points make no curve.
x AS (
  SELECT key FROM axis_of WHERE is_number AND n >= 3 ORDER BY n DESC, key = 'seq' DESC, key LIMIT 1
)
SELECT params ->> ('$.' || x.key) AS x, x.key AS axis,
       iif(is_good, time_ms, NULL) AS time, low_ms AS low, high_ms AS high,
       implementation || iif(is_mine, ' (mine)', '') AS implementation,
       coalesce((SELECT group_concat(p.axis || ' ' || p.value, ', ') FROM v_param p
                  WHERE p.case_id = measured.case_id AND p.axis <> x.key
                    AND p.axis IN (SELECT key FROM axis_of WHERE n > 1)),
                '') AS panel,
       protocol, device, status, run_uid
  FROM measured, x
 ORDER BY panel, protocol, device, row_order, x;
