-- title: Leaderboard 2026: memory of a step (predicted)
-- caption: Calculated, not measured: what a training step holds at once.
-- about sharded: `sharded`: a rank's share on two GPUs with weights, gradients and moments sharded and half the batch
--   each.
-- experiment: leaderboard_2026
-- command: syslab run leaderboard_2026 --preset laptop
-- columns: model?|1|s|left; @sizes; batch|1|d|right; context?|1|d|right; precision|1|s|left; mode?|1|s|left;
--   variant|1|code|left; parameters|1|d|right; weights|GiB|.4g|right; copy|GiB|.4g|right; gradients|GiB|.4g|right;
--   moments|GiB|.4g|right; kept|GiB|.4g|right; head|GiB|.4g|right; total|GiB|.4g|right; fits_80 as fits 80 GB|1|s|left;
--   fits_141 as fits 141 GB|1|s|left; sharded|GiB|.4g|right; petaflop|PFLOP|.3g|right; status|1|status|left
-- note: GB are 10^9 bytes. No gradient checkpointing: `kept` is what forward keeps, two score matrices a head and layer
--   in `eager`, none in `fused` and `graph`. With batch 1 `sharded` keeps the whole sequence.
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.role = 'predicted'
     AND v.world_size = 1
)
SELECT params ->> '$.model' AS model, params ->> '$.d_model' AS d_model,
       params ->> '$.d_ff' AS d_ff, params ->> '$.layers' AS layers,
       params ->> '$.heads' AS heads, params ->> '$.vocab' AS vocab,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, params ->> '$.mode' AS mode,
       iif(implementation = 'predicted', 'fused', 'eager') AS variant, found ->> '$.parameters' AS parameters,
       (found ->> '$.weights_bytes') / 1073741824 AS weights, (found ->> '$.copy_bytes') / 1073741824 AS copy,
       (found ->> '$.gradient_bytes') / 1073741824 AS gradients, (found ->> '$.moment_bytes') / 1073741824 AS moments,
       (found ->> '$.kept_bytes') / 1073741824 AS kept, (found ->> '$.head_bytes') / 1073741824 AS head,
       (found ->> '$.total_bytes') / 1073741824 AS total,
       iif((found ->> '$.total_bytes') <= 80e9, 'yes', 'no') AS fits_80,
       iif((found ->> '$.total_bytes') <= 141e9, 'yes', 'no') AS fits_141,
       (((found ->> '$.weights_bytes') + (found ->> '$.gradient_bytes') + (found ->> '$.moment_bytes')) / 2
          + (found ->> '$.copy_bytes')
         + ((found ->> '$.kept_bytes') + (found ->> '$.head_bytes')) / iif(params ->> '$.batch' > 1,
                                                                           2, 1)) / 1073741824 AS sharded,
       1e-15 * (found ->> '$.step_flops') AS petaflop, status, message, run_uid
  FROM t
 ORDER BY model, d_model, d_ff, layers, heads, vocab, batch, precision, variant DESC, mode DESC;
