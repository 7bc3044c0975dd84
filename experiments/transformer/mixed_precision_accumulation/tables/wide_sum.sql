-- sentence: Both {accumulator} sums of {addend_type} addends are equal, {value} (error {error}), because {addend_type}
--   converts to {accumulator} exactly, before or in the addition; {share} comes from rounding each 0.01 to {addend}.
-- experiment: mixed_precision_accumulation
-- fills: *
-- columns: accumulator|1|s|left; addend_type|1|s|left; value|1|s|right; error|1|s|right; addend|1|s|right;
--   additions|1|d|right; share|1|s|left
WITH sums AS (
  SELECT t.params ->> '$.case' AS case_name, t.facts ->> '$.accumulator' AS accumulator,
         t.facts ->> '$.addend' AS addend_type, t.params ->> '$.additions' AS additions,
         max(m.value) FILTER (WHERE m.name = 'value') AS value, max(m.value) FILTER (WHERE m.name = 'error') AS error,
         max(m.value) FILTER (WHERE m.name = 'addend') AS addend, max(t.run_uid) AS run_uid
    FROM v_newest t
    JOIN metric m ON m.attempt_id = t.attempt_id
   WHERE t.experiment = ?1 AND t.status = 'ok' AND t.checked
   GROUP BY case_name, additions
),
-- Both ways of converting, and both came to the same.
both_ways AS (
  SELECT accumulator, addend_type, additions, max(value) AS value, max(error) AS error, max(addend) AS addend,
         max(run_uid) AS run_uid
    FROM sums
   WHERE accumulator <> addend_type
   GROUP BY accumulator, addend_type, additions
  HAVING count(*) > 1 AND min(value) = max(value)
)
SELECT accumulator, addend_type, printf('%.8g', value) AS value, printf('%+.3g', error) AS error,
       printf('%.10f', addend) AS addend, additions,
       iif(abs(additions * (addend - 0.01) / error - 1) < 0.005,
           'the error', printf('%.3g %% of the error', 100 * additions * (addend - 0.01) / error)) AS share, run_uid
  FROM (SELECT *,
               row_number() OVER (PARTITION BY accumulator, addend_type ORDER BY additions <> 1000, additions) AS place
          FROM both_ways)
 WHERE place = 1 AND error <> 0;
