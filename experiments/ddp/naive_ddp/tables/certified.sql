-- sentence: {how} On {toys}, {ranks} ranks give weights bit-identical to one process after {steps}.{laws}
-- experiment: naive_ddp
-- fills: *
-- columns: ranks|1|d|right; how|1|s|left; toys|1|s|left; steps|1|s|left; laws|1|s|left
WITH naive AS MATERIALIZED (
  SELECT e.value AS name
    FROM (SELECT c.tests FROM v_certified c JOIN v_data_parallel d ON d.attempt_id = c.attempt_id
           WHERE d.experiment = 'naive_ddp' AND d.is_good AND c.tests IS NOT NULL LIMIT 1) c,
         json_each('["' || replace(c.tests, ', ', '","') || '"]') e
)
SELECT ranks, how, laws, toys, steps, max(run_uid) AS run_uid
  -- What says the same of several cases is said once.
  FROM (SELECT row_number() OVER (ORDER BY v.model, v.batch, v.context, v."precision", v.ranks,
                                           v.row_order, v.bucket_mb) AS place, v.model, v."precision",
               v.batch, v.context, v.ranks, v.backend, v.device, v.protocol, v.implementation, v.strategy,
              CASE WHEN v.strategy = 'naive'
                     THEN 'Each rank takes part of the rows and scales its loss by that share; '
                          || 'after backward each gradient is all-reduced, and every rank runs AdamW.'
                   WHEN v.strategy = 'overlap'
                     THEN 'When the last kernel that writes a gradient is queued, '
                          || 'a hook queues its asynchronous all-reduce on a second stream, behind an event; '
                          || 'the optimizer waits for the event of the last one.'
                   ELSE 'Buckets fill in the order in which backward finishes gradients: LM head, final norm, '
                        || 'blocks from last to first (in each W2, W1 with W3, second norm, output projection, '
                        || 'Q with K and V, first norm), embeddings. Reverse order of registration differs '
                        || 'within a block alone: both norms come first there, and a bucket would wait for them. '
                        || 'A hook adds each final gradient to the open bucket (one larger than the limit is a bucket '
                        || 'of its own) and queues a full bucket''s asynchronous all-reduce on a second stream, '
                        || 'behind an event; the optimizer waits for the last event.' END AS how,
              CASE WHEN k.tests IS NULL THEN ''
                   -- What naive_ddp's sentence lists is not listed again.
                   WHEN ?1 <> 'naive_ddp' AND (SELECT count(*) FROM naive) > 0
                    AND NOT EXISTS (SELECT 1 FROM naive WHERE ', ' || k.tests || ', ' NOT LIKE '%, ' || name || ', %')
                     THEN printf(' `syslab check` found no counterexample in %d random models each: '
                                 || 'as in “Naive DDP”%s.', k.test_cases,
                                 coalesce((SELECT ', and ' || group_concat(e.value, ', ')
                                             FROM json_each('["' || replace(k.tests, ', ', '","') || '"]') e
                                            WHERE e.value NOT IN (SELECT name FROM naive)), ''))
                   ELSE printf(' `syslab check` found no counterexample in %d random models each: %s.',
                               k.test_cases, k.tests) END AS laws,
              replace(k.toys, 'integer-valued ', iif(v.strategy = 'naive', 'integer-valued (so exact) ', '')) AS toys,
               k.steps, v.run_uid
         FROM v_data_parallel v
         JOIN v_certified k ON k.attempt_id = v.attempt_id
        WHERE v.experiment = ?1 AND v.is_good)
 GROUP BY ranks, how, laws, toys, steps
 ORDER BY min(place);
