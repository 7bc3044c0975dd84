-- An attempt of several ranks, each of which passed a certificate of training (reference:certificate): on which toy
-- models (`toys`) and after how many `steps`, in the certificate's own words; and of its experiment the other laws that
-- nothing falsifies and that the certificate does not show itself (`tests`, in words) with how many random cases the
-- least tried of them had (`test_cases`). Both are NULL where there are none.
CREATE VIEW v_certified AS
SELECT k.attempt_id, k.ranks, k.toys, k.steps, t.tests, t.test_cases
  FROM (SELECT attempt_id, count(*) AS ranks,
               replace(rtrim(substr(message, instr(message, '; ') + 2,
                                    instr(message, ' have the bits of one process') - instr(message, '; ') - 2), ','),
                       ' toy models with exact arithmetic', ' integer-valued toy models') AS toys,
               substr(message, instr(message, ' of one process after ') + 22) AS steps
          FROM check_result
         WHERE name LIKE 'reference:certificate%' AND outcome = 'passed'
         GROUP BY attempt_id) k
  JOIN attempt a   ON a.id = k.attempt_id
  JOIN plan_case p ON p.run_id = a.run_id AND p.seq = a.plan_seq AND p.world_size = k.ranks AND p.world_size > 1
  JOIN case_def c  ON c.id = p.case_id
  LEFT JOIN (SELECT experiment, group_concat(name, ', ') AS tests, min(cases) AS test_cases
               FROM (SELECT experiment,
                            CASE substr(law, instr(law, '.') + 1)
                              WHEN 'messages' THEN 'message counts' WHEN 'any_order' THEN 'gradients final in any order'
                              WHEN 'shares_buffers' THEN 'equal buffers'
                              WHEN 'shares_parameters' THEN 'equal weights at the start'
                              WHEN 'accumulated' THEN 'accumulated gradients' WHEN 'waits' THEN 'no read before arrival'
                              WHEN 'overlaps' THEN 'communication starts in backward' WHEN 'adamw' THEN 'AdamW'
                              WHEN 'few_parameters' THEN 'fewer parameters than ranks'
                              WHEN 'zero_grad' THEN '`zero_grad`'
                              WHEN 'closure' THEN '`step(closure)`'
                              WHEN 'state_once' THEN 'each state on one rank'
                              WHEN 'state_shared' THEN 'equal shares of state'
                              WHEN 'holds_parts' THEN 'only its own shards on a rank'
                              WHEN 'uneven_rows' THEN 'batches that do not divide evenly'
                              ELSE replace(substr(law, instr(law, '.') + 1), '_', ' ') END AS name,
                            max(cases_run) AS cases
                       FROM v_coverage
                      WHERE NOT is_mine AND measured_here
                        AND substr(law, instr(law, '.') + 1) NOT IN ('certificate', 'equals_one_process',
                                                                     'tied_weights', 'groups', 'added_group')
                      GROUP BY experiment, law
                     HAVING min(outcome = 'passed') = 1
                      ORDER BY experiment, law)
              GROUP BY experiment) t ON t.experiment = c.experiment;
