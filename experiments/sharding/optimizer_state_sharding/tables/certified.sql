-- sentence: {owners} On {toys}, {ranks} ranks with {way} give weights bit-identical to
--   one process after {steps}. A rank of {model} ({millions} M parameters) holds {held_moments} of moments,
--   {share}.{laws}
-- experiment: optimizer_state_sharding
-- fills: *
-- columns: model|1|s|left; ranks|1|d|right; way|1|s|left; millions|1|.3g|right; toys|1|s|left; steps|1|s|left;
--   held_moments|MiB|.4b|right; share|1|s|left; owners|1|s|left; laws|1|s|left
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
)
SELECT model, ranks, iif(sharding = 'optimizer', 'optimizer state sharded', printf('sharding `%s`', sharding)) AS way,
       1e-6 * formula_moments * 1048576 * ranks / 8 AS millions, owners, laws, toys, steps, held_moments,
       iif(abs(held_moments / formula_moments - 1) < 0.001, printf('1/%d of all', ranks),
           printf('where 1/%d of all is %.4g MiB', ranks, formula_moments)) AS share, max(run_uid) AS run_uid
  -- What says the same of several cases is said once.
  FROM (SELECT row_number() OVER (ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order,
                                           v.sharding <> 'none', v.sharding, v.updates, v.wire <> 'own', v.wire,
                                           v.bucket_mb) AS place, v.model, v."precision", v.batch, v.context,
               v.ranks, v.backend, iif(v.wire = 'own', 'uncompressed', 'in ' || v.wire) AS travelling, v.device,
               v.protocol, v.implementation, v.sharding, v.turn, coalesce(v.bucket_mb, 25) AS bucket_mb,
              (v.metrics ->> '$.held_moments') / 1048576.0 AS held_moments,
               (v.metrics ->> '$.formula_moments') / 1048576.0 AS formula_moments,
              iif(v.sharding = 'optimizer', 'Parameters go to owners largest first, each to the rank with the fewest '
                                            || 'elements so far; an owner updates ' || 'its own and broadcasts them.',
                  'Each rank owns a flat range of all parameters, as long as every other.') AS owners,
              iif(k.tests IS NULL, '',
                  printf(' `syslab check` found no counterexample in %d random models each: %s.', k.test_cases,
                         k.tests)) AS laws, replace(k.toys, 'integer-valued ', '') AS toys, k.steps, v.run_uid
         FROM v
         JOIN v_certified k ON k.attempt_id = v.attempt_id
        WHERE v.is_good)
 GROUP BY model, ranks, sharding, owners, laws, toys, steps, held_moments, formula_moments
 ORDER BY min(place);
