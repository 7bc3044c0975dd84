-- sentence: {how} Test `reference:certificate`: on {toys}, training on {ranks} ranks gives bit-identical weights to one process after {steps}.{laws}
-- experiment: naive_ddp
-- fills: *
-- columns: ranks|1|d|right; how|1|s|left; toys|1|s|left; steps|1|s|left; laws|1|s|left
SELECT ranks, how, laws, toys, steps, max(run_uid) AS run_uid
  -- What says the same of several cases is said once.
  FROM (SELECT row_number() OVER (ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.bucket_mb) AS place, v.model, v."precision", v.batch, v.context, v.ranks, v.backend, v.device, v.protocol, v.implementation, v.strategy,
              CASE WHEN v.strategy = 'naive'
                     THEN 'Each rank scales its loss by its share of the rows; when backward has ended, every gradient is all-reduced in turn, and AdamW runs on every rank.'
                   WHEN v.strategy = 'overlap'
                     THEN 'When the last kernel that writes a gradient is queued, a hook queues its asynchronous all-reduce on a second stream, behind an event; the optimizer waits for the event of the last one.'
                   ELSE 'Buckets fill in the order in which backward finishes gradients, the reverse of registration except for a block''s two norms, which are registered side by side but not finished one after the other. A hook adds each final gradient to the open bucket (one larger than the limit is a bucket of its own) and queues a full bucket''s asynchronous all-reduce on a second stream, behind an event; the optimizer waits for the last event. Tests `2025 bucketed toy` and `2025 bucketed tied` (`tests/e2e/parallel_official.py`) run the hand-out''s two toy models, with frozen and tied parameters, at its three limits of 0.0016, 0.0001 and 0.01 MB on 2 Gloo ranks; random cases draw limits from 1 to 400 bytes.' END AS how,
              coalesce((SELECT printf(' Other tests passed (%d random cases each): %s.', min(cases), group_concat(name, ', '))
                          FROM (SELECT replace(substr(law, instr(law, '.') + 1), '_', ' ') AS name, max(cases_run) AS cases FROM v_coverage
                                 WHERE experiment = ?1 AND NOT is_mine AND law NOT LIKE '%.certificate' GROUP BY law HAVING min(outcome = 'passed') = 1
                                 ORDER BY law) HAVING count(*) > 0), '') AS laws,
              (SELECT replace(rtrim(substr(k.message, instr(k.message, '; ') + 2, instr(k.message, ' have the bits of one process') - instr(k.message, '; ') - 2), ','), ' toy models with exact arithmetic', ' integer-valued toy models') FROM check_result k
                WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' LIMIT 1) AS toys,
              (SELECT substr(k.message, instr(k.message, ' of one process after ') + 22) FROM check_result k
                WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' LIMIT 1) AS steps, v.run_uid
         FROM v_data_parallel v
        WHERE v.experiment = ?1 AND v.is_good AND v.ranks > 1
          AND v.ranks = (SELECT count(*) FROM check_result k
                          WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' AND k.outcome = 'passed'))
 GROUP BY ranks, how, laws, toys, steps
 ORDER BY min(place);
