-- sentence: Not passed: {what}.
-- experiment: *
-- origins: all
-- columns: what|1|s|left
WITH axis AS (  -- what tells the experiment's cases from one another
  SELECT x.axis
    FROM case_def c
    JOIN v_param x ON x.case_id = c.id
   WHERE c.experiment = ?1
   GROUP BY x.axis
  HAVING count(DISTINCT x.value) > 1
),
n AS MATERIALIZED (
  SELECT n.*, n.implementation || iif(n.measured_here, '', ' (self-reported)') AS who, iif(n.law IS NULL,
                  coalesce((SELECT group_concat(x.axis || '=' || x.value, ' ') FROM v_param x
                    WHERE x.case_id = n.case_id AND x.axis IN (SELECT axis FROM axis) AND CAST(x.value AS TEXT) <> '0'),
                           'the only case') || iif(n.world_size > 1, printf(', %d ranks', n.world_size), ''),
                  n.law) AS what
    FROM v_not_passed n
   WHERE n.experiment = ?1
),
-- What ended alike is one item; of many cases their number.
item AS (
  SELECT who, CASE status WHEN 'check_failed' THEN 'wrong' WHEN 'error' THEN 'ended with an error'
                          WHEN 'timeout' THEN 'timed out'
                          ELSE status END AS ended,
         iif(count(*) > 2, printf('%d attempts', count(*)), group_concat(what, ' and ')) AS cases,
         iif(law IS NULL, substr(property, instr(property, ':') + 1) || ': ', '') AS output,
         worst_error, bound, passed_later IS NOT NULL AS later,
         iif(later_device <> device, ' on another device', '') AS elsewhere, later_bound, max(run_uid) AS run_uid
    FROM n
   GROUP BY who, status, iif(bound IS NULL, '', attempt_uid), later_device
   ORDER BY who, status, min(case_id)
)
SELECT group_concat(printf('`%s` %s (%s%s%s)', who, ended, cases,
                           iif(bound IS NULL, '', printf('; %serror %.3g, bound %.3g', output, worst_error, bound)),
                           CASE WHEN later AND later_bound IS NOT NULL AND later_bound <> bound
                                  THEN printf('; later ok%s with bound %.3g', elsewhere, later_bound)
                                WHEN later THEN '; later ok' || elsewhere ELSE '' END), '; ') AS what
  FROM item
HAVING count(*) > 0;
