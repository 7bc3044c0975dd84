-- sentence: Accumulated in {accumulator}, {additions} × 0.01 gives {value} (error {error}): every addition is rounded,
--   near the end to a multiple of {step}.
-- experiment: mixed_precision_accumulation
-- fills: *
-- columns: accumulator|1|s|left; additions|1|d|right; value|1|s|right; error|1|s|right; step|1|s|right
WITH RECURSIVE powers(low) AS (VALUES (0.00390625) UNION ALL SELECT 2 * low FROM powers WHERE low < 1e6),
sums AS (
  SELECT t.params ->> '$.case' AS case_name, t.facts ->> '$.accumulator' AS accumulator,
         t.facts ->> '$.addend' AS addend, t.params ->> '$.additions' AS additions,
         max(m.value) FILTER (WHERE m.name = 'value') AS value, max(m.value) FILTER (WHERE m.name = 'error') AS error,
         max(m.value) FILTER (WHERE m.name = 'last_change') AS last_change, max(t.run_uid) AS run_uid
    FROM v_newest t
    JOIN metric m ON m.attempt_id = t.attempt_id
   WHERE t.experiment = ?1 AND t.status = 'ok' AND t.checked
   GROUP BY case_name, additions
)
-- Of those that went on to the end; the others stalled. As many additions as the hand-out asks for, if there are.
SELECT accumulator, additions, printf('%.8g', value) AS value, printf('%+.3g', error) AS error, run_uid,
       printf('%.2g',
              low / CASE accumulator WHEN 'fp16' THEN 1024 WHEN 'bf16' THEN 128 WHEN 'fp32' THEN 8388608 END) AS step
  FROM (SELECT *, error AS sums_error,
               row_number() OVER (PARTITION BY case_name ORDER BY additions <> 1000, additions) AS place FROM sums)
  JOIN powers ON low <= value AND value < 2 * low
 WHERE place = 1 AND accumulator = addend AND last_change = additions
 ORDER BY abs(sums_error) DESC;
