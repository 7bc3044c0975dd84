-- sentence: The {accumulator} sum stalls at {value} after {last_change} of {additions} additions: the addend is less
--   than half the spacing of {accumulator} there.
-- experiment: mixed_precision_accumulation
-- fills: *
-- columns: accumulator|1|s|left; value|1|.3g|right; last_change|1|d|right; additions|1|d|right
SELECT t.facts ->> '$.accumulator' AS accumulator, max(m.value) FILTER (WHERE m.name = 'value') AS value,
       max(m.value) FILTER (WHERE m.name = 'last_change') AS last_change, t.params ->> '$.additions' AS additions,
       max(t.run_uid) AS run_uid
  FROM v_newest t
  JOIN metric m ON m.attempt_id = t.attempt_id
 WHERE t.experiment = 'mixed_precision_accumulation' AND t.status = 'ok' AND t.checked
 GROUP BY t.params ->> '$.case', additions
HAVING last_change < additions
 ORDER BY accumulator, additions;
