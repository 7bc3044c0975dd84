-- sentence: Each of these alone lowers the {before} tokens that are needed with the axes in parallel: {levers}.
-- experiment: communication_accounting
-- fills: d
-- columns: before|1|s|right; levers|1|s|left
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens') ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
),
levers AS (
  SELECT t.attempt_id, t.run_uid, l.key AS place, l.value ->> '$.lever' AS lever, l.value ->> '$.says' AS says, l.value ->> '$.devices' AS devices,
         l.value ->> '$.overlapped' AS overlapped
    FROM t, json_each(t.facts, '$.levers') l
   WHERE t.place = 1 AND t.status = 'ok'
)
SELECT printf('%,d', b.overlapped) AS before,
       (SELECT group_concat(printf('to %,d if %s', overlapped, ways), '; ')
          FROM (SELECT overlapped, group_concat(replace(replace(replace(says, ' stages, each on', ' pipeline stages work, each on'), '; the batch is that of one', ', of which each is a batch'), '; the batch is a micro-batch', ', counted per micro-batch'), ', or ') AS ways
                  FROM (SELECT * FROM levers a WHERE a.attempt_id = b.attempt_id AND a.place > 0 ORDER BY a.place)
                 GROUP BY overlapped
                 ORDER BY min(place))) AS levers, b.run_uid
  FROM levers b
 WHERE b.place = 0
 ORDER BY b.attempt_id;
