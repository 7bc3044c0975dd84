-- sentence: {lever} ({says}): {overlapped} instead of {before} tokens with the axes in parallel, {overlapped_each} per device, and {serial} instead
--   of {before_serial} in sequence.
-- experiment: communication_accounting
-- fills: d
-- columns: lever|1|s|left; says|1|s|left; overlapped|1|d|right; before|1|d|right; overlapped_each|1|.4g|right; serial|1|d|right; before_serial|1|d|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens') ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
),
levers AS (
  SELECT t.attempt_id, t.run_uid, l.key AS place, l.value ->> '$.lever' AS lever, l.value ->> '$.says' AS says, l.value ->> '$.devices' AS devices,
         l.value ->> '$.overlapped' AS overlapped, l.value ->> '$.serial' AS serial
    FROM t, json_each(t.facts, '$.levers') l
   WHERE t.place = 1 AND t.status = 'ok'
)
SELECT upper(substr(a.lever, 1, 1)) || substr(a.lever, 2) AS lever, a.says, a.overlapped, b.overlapped AS before, 1.0 * a.overlapped / a.devices AS overlapped_each, a.serial,
       b.serial AS before_serial, a.run_uid
  FROM levers a
  JOIN levers b ON b.attempt_id = a.attempt_id AND b.place = 0
 WHERE a.place > 0
 ORDER BY a.attempt_id, a.place;
