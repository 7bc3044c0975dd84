-- title: The parent killed at any moment
-- caption: The newest attempt of each case, failed ones among them.
-- about lost: All columns from `lost` on must be 0.
-- experiment: selftest_crash
-- columns: kind|1|s|left; seed|1|d|right; kills|1|d|right; acknowledged|1|d|right; lost|1|d|right; damaged|1|d|right;
--   processes|1|d|right; files|1|d|right; planted?|1|s|left; status|1|s|left
WITH counted AS (
  SELECT v.attempt_id, v.params, v.run_uid, v.status, m.name, m.value
    FROM v_newest v
    JOIN metric m ON m.attempt_id = v.attempt_id
   WHERE v.experiment = ?1 AND v.task = 'measure'
)
SELECT params ->> '$.kind' AS kind, params ->> '$.seed' AS seed, max(value) FILTER (WHERE name = 'kills') AS kills,
       max(value) FILTER (WHERE name = 'acknowledged') AS acknowledged, max(value) FILTER (WHERE name = 'lost') AS lost,
       max(value) FILTER (WHERE name = 'damaged') AS damaged,
       max(value) FILTER (WHERE name = 'processes_left') AS processes,
       max(value) FILTER (WHERE name = 'files_left') AS files, params ->> '$.planted' AS planted, status, run_uid
  FROM counted
 GROUP BY attempt_id
 ORDER BY planted <> 'none', planted, kind, seed, params;
