-- sentence: {how} Test `reference:certificate`: {ranks} ranks with strategy {strategy} end
--   with one process's bits: {toys}. {model} in {precision} ({batch} × {context} tokens, {backend}, {device}, protocol {protocol}, {implementation}) issued
--   {all_reduces}, as expected.{laws}
-- experiment: naive_ddp
-- fills: *
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right; backend|1|code|left; device|1|s|left;
--   protocol|1|s|left; implementation|1|code|left; strategy|1|code|left; how|1|s|left; toys|1|s|left; all_reduces|1|s|left; laws|1|s|left
SELECT v.model, v."precision", v.batch, v.context, v.ranks, v.backend, v.device, v.protocol, v.implementation, v.strategy,
       CASE WHEN v.strategy = 'naive'
              THEN 'Each rank scales its loss by its share of the rows; when backward has ended, every gradient is all-reduced in turn, and AdamW runs on every rank.'
            WHEN v.strategy = 'overlap'
              THEN 'When the last kernel that writes a gradient is queued, a hook queues its asynchronous all-reduce on a second stream, behind an event; the optimizer waits for the event of the last one.'
            ELSE 'A hook adds each final gradient to the open bucket (one larger than the limit is a bucket of its own), and queues a full one''s asynchronous all-reduce on a second stream, behind an event; the optimizer waits for the event of the last one. Buckets fill as backward finishes gradients: reverse registration order, but that two norms registered side by side are finished apart. The hand-out''s limits of 0.0016, 0.0001 and 0.01 MB are those of its toy models in `tests/e2e/parallel_official.py`; random cases draw any from 1 to 400 bytes.' END AS how,
       iif(v.buckets = 1, 'one all-reduce', printf('%d all-reduces', v.buckets)) AS all_reduces,
       coalesce((SELECT printf(' Other tests passed: %d, of %d random cases each.', count(*), min(cases))
                   FROM (SELECT replace(substr(law, instr(law, '.') + 1), '_', ' ') AS name, max(cases_run) AS cases FROM v_coverage
                          WHERE experiment = ?1 AND NOT is_mine AND law NOT LIKE '%.certificate' GROUP BY law HAVING min(outcome = 'passed') = 1
                          ORDER BY law) HAVING count(*) > 0), '') AS laws,
       (SELECT replace(replace(substr(k.message, instr(k.message, '; ') + 2), ', have the bits of one process after', '; compared after'), ' have the bits of one process after', '; compared after') FROM check_result k
         WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' LIMIT 1) AS toys, v.run_uid
  FROM v_data_parallel v
 WHERE v.experiment = ?1 AND v.is_good AND v.ranks > 1
   AND v.ranks = (SELECT count(*) FROM check_result k
                   WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' AND k.outcome = 'passed')
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.bucket_mb;
