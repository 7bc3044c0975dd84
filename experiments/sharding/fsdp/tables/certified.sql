-- sentence: Weights of linear layers and embeddings are sharded, gathered for use, then freed, and their gradients
--   reduce-scattered; norms are replicated. On {toys}, {ranks} ranks give weights bit-identical to one process after
--   {steps}. In {model} in {precision} ({batch} × {context} tokens, {backend}, gradients {travelling}, {device},
--   protocol {protocol}, {implementation}, gathered by {granularity}) a rank holds {state} of weights, gradients and
--   moments, {expected}. Gathered weights and unreduced gradients share {slots}{freed}.{laws}
-- experiment: fsdp
-- fills: *
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right;
--   backend|1|code|left; travelling|1|s|left; device|1|s|left; protocol|1|s|left; implementation|1|code|left;
--   granularity|1|s|left; toys|1|s|left; steps|1|s|left; state|MiB|.4b|right; expected|1|s|left; slots|MiB|.4b|right;
--   freed|1|s|left; laws|1|s|left
SELECT v.params ->> '$.model' AS model, v.params ->> '$.precision' AS "precision", v.params ->> '$.batch' AS batch,
       v.params ->> '$.context' AS context, v.world_size AS ranks, v.backend,
       coalesce('in ' || nullif(v.params ->> '$.wire', 'own'), 'uncompressed') AS travelling,
       v.device, v.protocol, v.implementation,
       v.params ->> '$.granularity' AS granularity,
       (SELECT max(value) FROM metric m
         WHERE m.attempt_id = v.attempt_id AND m.name = 'state_bytes') / 1048576.0 AS state,
       (SELECT iif(abs(max(iif(name = 'state_bytes', value, 0)) / max(iif(name = 'formula_bytes', value, 0))
                         - 1) < 0.001, printf('as expected (16Ψ/%d and whole norms)', v.world_size),
                   printf('where 16Ψ/%d and whole norms are %.4g MiB',
                          v.world_size, max(iif(name = 'formula_bytes', value, 0)) / 1048576.0))
          FROM metric m WHERE m.attempt_id = v.attempt_id AND m.name IN ('state_bytes', 'formula_bytes')) AS expected,
       (SELECT max(value) FROM metric m
         WHERE m.attempt_id = v.attempt_id AND m.name = 'slot_bytes') / 1048576.0 AS slots,
       -- `slot_bytes` has both kinds of slots. Of a small model the largest unit, twice, and its gradient are as much
       -- as all weights.
       (SELECT iif(max(b.value) < 2 * max(p.value),
                   printf(' (all weights: %.4g MiB): each is freed after use', 4 * max(p.value) / 1048576.0), '')
          FROM metric b, metric p
         WHERE b.attempt_id = v.attempt_id AND b.name = 'slot_bytes'
           AND p.attempt_id = v.attempt_id AND p.name = 'parameters') AS freed,
       iif(k.tests IS NULL, '',
           printf(' `syslab check` found no counterexample in %d random models each: %s.',
                  k.test_cases, k.tests)) AS laws, replace(k.toys, 'integer-valued ', '') AS toys, k.steps, v.run_uid
  FROM v_measured v
  JOIN v_certified k ON k.attempt_id = v.attempt_id
 WHERE v.experiment = ?1 AND v.is_good
 ORDER BY v.metrics ->> '$.parameters' DESC, batch, context,
          "precision" <> 'fp32', ranks, v.row_order, granularity DESC, travelling;
