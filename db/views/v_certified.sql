-- An attempt of several ranks, each of which passed a certificate of training (reference:certificate): on which toy models (`toys`) and after how
-- many `steps`, in the certificate's own words; and of its experiment the other laws that nothing falsifies (`tests`, named without their family)
-- with how many random cases the least tried of them had (`test_cases`). Both are NULL where there are none.
CREATE VIEW v_certified AS
SELECT k.attempt_id, k.ranks, k.toys, k.steps, t.tests, t.test_cases
  FROM (SELECT attempt_id, count(*) AS ranks,
               replace(rtrim(substr(message, instr(message, '; ') + 2, instr(message, ' have the bits of one process') - instr(message, '; ') - 2), ','),
                       ' toy models with exact arithmetic', ' integer-valued toy models') AS toys,
               substr(message, instr(message, ' of one process after ') + 22) AS steps
          FROM check_result
         WHERE name LIKE 'reference:certificate%' AND outcome = 'passed'
         GROUP BY attempt_id) k
  JOIN attempt a   ON a.id = k.attempt_id
  JOIN plan_case p ON p.run_id = a.run_id AND p.seq = a.plan_seq AND p.world_size = k.ranks AND p.world_size > 1
  JOIN case_def c  ON c.id = p.case_id
  LEFT JOIN (SELECT experiment, group_concat(name, ', ') AS tests, min(cases) AS test_cases
               FROM (SELECT experiment, replace(substr(law, instr(law, '.') + 1), '_', ' ') AS name, max(cases_run) AS cases
                       FROM v_coverage
                      WHERE NOT is_mine AND law NOT LIKE '%.certificate'
                      GROUP BY experiment, law
                     HAVING min(outcome = 'passed') = 1
                      ORDER BY experiment, law)
              GROUP BY experiment) t ON t.experiment = c.experiment;
