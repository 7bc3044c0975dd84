-- title: Ranks killed and stopped
-- caption: The newest attempt of each case, failed ones among them. All faults must be named.
-- about late, processes, files: `late`, `processes` and `files` must be 0.
-- experiment: selftest_rank_faults
-- columns: kind|1|s|left; seed|1|d|right; limit|ms|d|right; faults|1|d|right; named|1|d|right; late|1|d|right;
--   slowest|s|.3g|right; processes|1|d|right; files|1|d|right; planted?|1|s|left; status|1|s|left
WITH counted AS (
  SELECT v.attempt_id, v.params, v.run_uid, v.status, m.name, m.value
    FROM v_newest v
    JOIN metric m ON m.attempt_id = v.attempt_id
   WHERE v.experiment = ?1 AND v.task = 'measure'
)
SELECT params ->> '$.kind' AS kind, params ->> '$.seed' AS seed, params ->> '$.limit_ms' AS "limit",
       max(value) FILTER (WHERE name = 'faults') AS faults, max(value) FILTER (WHERE name = 'named') AS named,
       max(value) FILTER (WHERE name = 'late') AS late, max(value) FILTER (WHERE name = 'slowest') AS slowest,
       max(value) FILTER (WHERE name = 'processes_left') AS processes,
       max(value) FILTER (WHERE name = 'files_left') AS files,
       params ->> '$.planted' AS planted, status, run_uid
  FROM counted
 GROUP BY attempt_id
 ORDER BY planted <> 'none', planted, kind, seed, params;
