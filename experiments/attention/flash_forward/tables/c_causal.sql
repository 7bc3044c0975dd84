-- sentence: `causal` is a flag saved for backward. Tiles of keys beyond the last visible one are skipped, and in the
--   tiles on the diagonal masked scores are −∞. In {cases} random cases changing masked keys changed no output.
-- experiment: flash_forward
-- command: syslab check flash_forward
-- fills: c
-- columns: implementations|1|s|left; cases|1|d|right
SELECT group_concat('`' || implementation || '`', ', ') AS implementations, sum(cases) AS cases, max(run_uid) AS run_uid
  FROM (SELECT c.implementation, sum(cases_run) AS cases, max(c.run_uid) AS run_uid
          FROM v_coverage c
          JOIN v_rung r ON r.run_uid = c.run_uid AND r.experiment = c.experiment AND r.implementation = c.implementation
         WHERE c.experiment = ?1 AND law = 'attention.causal_prefix'
           AND NOT is_mine AND measured_here AND r.is_general AND NOT r.tf32
         GROUP BY c.implementation
        HAVING min(outcome = 'passed') = 1
         ORDER BY c.implementation)
HAVING count(*) > 0;
