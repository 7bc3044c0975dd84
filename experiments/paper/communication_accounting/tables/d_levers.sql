-- sentence: With the axes in parallel B ≥ X·α/M_X decides. Each of these alone lowers its {before} tokens: {levers}.
-- experiment: communication_accounting
-- fills: d
-- columns: before|1|s|right; levers|1|s|left
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens')
                                ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
),
levers AS (
  SELECT t.attempt_id, t.run_uid, l.key AS place, l.value ->> '$.lever' AS lever,
         l.value ->> '$.says' AS says, l.value ->> '$.devices' AS devices,
         l.value ->> '$.overlapped' AS overlapped
    FROM t, json_each(t.facts, '$.levers') l
   WHERE t.place = 1 AND t.status = 'ok'
)
SELECT printf('%,d', b.overlapped) AS before,
       (SELECT group_concat(printf('to %,d%s if %s', overlapped, of_micro_batch, ways), '; ')
          FROM (SELECT overlapped,
                       iif(max(lever IN ('gathers reused', 'pipeline')), ' a micro-batch', '') AS of_micro_batch,
                       group_concat(CASE lever WHEN 'fp8 weights' THEN 'weights travel in one byte (T_FSDP halves)'
                                               WHEN 'more links' THEN 'the FSDP axis has twice the links (M_X doubles)'
                                               WHEN 'gathers reused'
                                                 THEN substr(says, 1, instr(says || ';', ';') - 1) || ' (fewer gathers)'
                                               WHEN 'pipeline'
                                                 THEN replace(substr(says, 1, instr(says || ';', ';') - 1),
                                                              ' stages, each on',
                                                              ' pipeline stages each have') || ' (X shrinks)'
                                               ELSE says END, ' or ') AS ways
                  FROM (SELECT * FROM levers a WHERE a.attempt_id = b.attempt_id AND a.place > 0 ORDER BY a.place)
                 GROUP BY overlapped, lever IN ('gathers reused', 'pipeline')
                 ORDER BY min(place))) AS levers, b.run_uid
  FROM levers b
 WHERE b.place = 0
 ORDER BY b.attempt_id;
