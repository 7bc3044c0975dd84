-- sentence: {faults} ranks killed or stopped: {named} named, {late} told too late, the slowest after {slowest} s;
--   {processes} processes and {files} files left.
-- experiment: selftest_rank_faults
-- columns: faults|1|d|right; named|1|d|right; late|1|d|right; slowest|s|.3g|right; processes|1|d|right; files|1|d|right
SELECT total(m.value) FILTER (WHERE m.name = 'faults') AS faults,
       total(m.value) FILTER (WHERE m.name = 'named') AS named,
       total(m.value) FILTER (WHERE m.name = 'late') AS late, max(m.value) FILTER (WHERE m.name = 'slowest') AS slowest,
       total(m.value) FILTER (WHERE m.name = 'processes_left') AS processes,
       total(m.value) FILTER (WHERE m.name = 'files_left') AS files, max(v.run_uid) AS run_uid
  FROM v_newest v
  JOIN metric m ON m.attempt_id = v.attempt_id
 WHERE v.experiment = ?1 AND v.task = 'measure' AND v.params ->> '$.planted' = 'none'
HAVING count(*) > 0;
