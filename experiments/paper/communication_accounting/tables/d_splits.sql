-- sentence: Another split of the same {devices} devices needs fewer tokens: {tokens} at X = {x}, Y = {y} with the axes
--   in sequence, {tokens_once} at X = {x_once}, Y = {y_once} in parallel, because fewer ranks gather weights and
--   tensor-parallel communication grows with the batch as compute does, up to F = Y·α/M_Y.
-- experiment: communication_accounting
-- fills: d
-- columns: devices|1|d|right; x|1|d|right; y|1|d|right; tokens|1|s|right; x_once|1|d|right; y_once|1|d|right;
--   tokens_once|1|s|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens')
                                ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
),
splits AS (
  SELECT t.attempt_id, t.run_uid, (t.params ->> '$.fsdp_ranks') * (t.params ->> '$.tensor_ranks') AS devices,
         s.value ->> '$.x' AS x, s.value ->> '$.y' AS y,
         s.value ->> '$.serial' AS serial, s.value ->> '$.overlapped' AS overlapped
    FROM t, json_each(t.facts, '$.splits') s
   WHERE t.place = 1 AND t.status = 'ok'
)
SELECT a.devices, a.x, a.y, printf('%,d', min(a.serial)) AS tokens, b.x AS x_once,
       b.y AS y_once, printf('%,d', b.overlapped) AS tokens_once, a.run_uid
  FROM splits a
  JOIN splits b ON b.attempt_id = a.attempt_id
               AND b.overlapped = (SELECT min(c.overlapped) FROM splits c WHERE c.attempt_id = a.attempt_id)
 WHERE a.serial IS NOT NULL
 GROUP BY a.attempt_id
 ORDER BY a.devices;
