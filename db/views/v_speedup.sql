-- How many times as fast as the experiment's reference or peer: newest times of the same case, protocol, world size and
-- kind of machine. Only ok and checked rows; the reference itself is what others are checked against. Times are the
-- slowest rank's, as v_measured takes them. Both times were measured here, or neither was (`measured_here`). The
-- bounds take both 95 % intervals at their worst.
CREATE VIEW v_speedup AS
WITH time_of AS MATERIALIZED (
  SELECT case_id, case_uid, experiment, version, params, implementation, is_mine, measured_here, role, world_size,
         comparability_key, gpu_name, cpu_model, protocol, run_uid, checked, value AS time_s,
         coalesce(ci_low, value) AS low_s, coalesce(ci_high, value) AS high_s
    FROM v_latest v
   WHERE metric = 'time' AND unit = 's' AND value > 0
     AND rank = (SELECT x.rank FROM metric x WHERE x.attempt_id = v.attempt_id AND x.name = 'time'
                  ORDER BY x.rank <> -1, x.value DESC, x.rank LIMIT 1))
SELECT f.experiment, f.version, f.case_uid, f.params, f.implementation, f.is_mine, f.measured_here, f.world_size,
       f.comparability_key, f.gpu_name, f.cpu_model, f.protocol, f.run_uid, f.time_s,
       base.implementation           AS baseline,
       base.role                     AS baseline_role,
       base.time_s                   AS baseline_time_s,
       base.time_s / f.time_s        AS speedup,
       base.low_s / f.high_s         AS speedup_low,
       base.high_s / f.low_s         AS speedup_high,
       base.run_uid = f.run_uid      AS same_run
  FROM time_of f
  JOIN time_of base ON base.case_id = f.case_id AND base.world_size = f.world_size AND base.protocol IS f.protocol
                   AND base.comparability_key = f.comparability_key AND base.measured_here = f.measured_here
 WHERE base.role IN ('reference', 'peer')
   AND (base.checked OR base.role = 'reference')
   AND f.checked
   AND (f.implementation, f.is_mine) <> (base.implementation, base.is_mine);
