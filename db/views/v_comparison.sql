-- One row a comparison, with the machine and build of its run. `change` is time of B / time of A - 1, with its 95 %
-- interval. `verdict` is the one that stands after the whole sweep. `is_last`: no later comparison repeats this
-- one; what was measured here is repeated here alone.
-- `measured_here`: 0 of what came by merge or import and is not vouched for.
-- `rate_unit`: of programs that print a rate its unit. All times are then those of one unit, and more of it is faster.
CREATE VIEW v_comparison AS
SELECT c.id                             AS comparison_id,
       c.uid                            AS comparison_uid,
       r.id                             AS run_id,
       r.uid                            AS run_uid,
       r.verb,
       r.label,
       r.protocol ->> '$.name'          AS protocol,
       coalesce(c.at, r.started_at)     AS at,
       en.comparability_key,
       en.host,
       en.cpu_model,
       en.gpu_name,
       b.git_sha,
       b.git_dirty,
       c.experiment,
       c.params,
       (SELECT group_concat(j.key || '='
                            || CASE j.type WHEN 'real' THEN printf('%.15g', j.value) WHEN 'true' THEN 'true'
                                           WHEN 'false' THEN 'false' ELSE j.value END, ' ')
          FROM json_each(c.params) j) AS case_text,
       c.metric,
       c.unit,
       CASE c.experiment WHEN 'command' THEN
         (SELECT m.unit FROM comparison_attempt x JOIN metric m ON m.attempt_id = x.attempt_id AND m.name = 'rate'
           WHERE x.comparison_id = c.id LIMIT 1) END AS rate_unit,
       c.mode,
       c.side_a,
       c.side_b,
       c.side_a ->> '$.label'           AS label_a,
       c.side_b ->> '$.label'           AS label_b,
       c.value_a,
       c.value_b,
       exp(c.log_ratio) - 1             AS change,
       exp(c.ci_low) - 1                AS change_low,
       exp(c.ci_high) - 1               AS change_high,
       c.delta,
       c.launches,
       c.blocks,
       c.p_value,
       s.q_value,
       coalesce(s.verdict, c.verdict)   AS verdict,
       CASE WHEN s.comparison_id IS NULL THEN c.reason ELSE s.reason END AS reason,
       c.confirms,
       NOT EXISTS (SELECT 1 FROM comparison x
                     JOIN run xr ON xr.id = x.run_id LEFT JOIN arrival xa ON xa.run_uid = xr.uid
                    WHERE x.confirms = c.uid AND coalesce(xa.trusted, 1) >= coalesce(ar.trusted, 1)) AS is_last,
       c.facts,
       coalesce(ar.trusted, 1)          AS measured_here
  FROM comparison c
  JOIN run r          ON r.id = c.run_id
  JOIN v_environment en ON en.environment_id = r.environment_id
  JOIN v_build b        ON b.build_id = r.build_id
  LEFT JOIN arrival ar  ON ar.run_uid = r.uid
  LEFT JOIN comparison_sweep s ON s.comparison_id = c.id;
