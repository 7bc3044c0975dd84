-- sentence: {kills} kills of a running parent: of {acknowledged} acknowledged attempts {lost} are lost; {damaged}
--   databases damaged, {processes} processes and {files} files left.
-- experiment: selftest_crash
-- columns: kills|1|d|right; acknowledged|1|d|right; lost|1|d|right; damaged|1|d|right; processes|1|d|right;
--   files|1|d|right
SELECT total(m.value) FILTER (WHERE m.name = 'kills') AS kills,
       total(m.value) FILTER (WHERE m.name = 'acknowledged') AS acknowledged,
       total(m.value) FILTER (WHERE m.name = 'lost') AS lost,
       total(m.value) FILTER (WHERE m.name = 'damaged') AS damaged,
       total(m.value) FILTER (WHERE m.name = 'processes_left') AS processes,
       total(m.value) FILTER (WHERE m.name = 'files_left') AS files, max(v.run_uid) AS run_uid
  FROM v_newest v
  JOIN metric m ON m.attempt_id = v.attempt_id
 WHERE v.experiment = ?1 AND v.task = 'measure' AND v.params ->> '$.planted' = 'none'
HAVING count(*) > 0;
