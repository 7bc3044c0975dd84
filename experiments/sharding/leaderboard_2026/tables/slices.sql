-- title: Leaderboard 2026: slices of the 8B model on one GPU
-- caption: Median step time with its 95 % interval, of the model with few layers and of the whole; OOM: it does not
--   fit.
-- experiment: leaderboard_2026
-- command: syslab run leaderboard_2026 --preset slices
-- columns: model?|1|s|left; layers|1|d|right; d_model?|1|d|right; d_ff?|1|d|right; heads?|1|d|right; vocab?|1|d|right;
--   batch|1|d|right; context|1|d|right; precision|1|s|left; mode?|1|s|left; @timed; tflops as rate|TFLOP/s|.4g|right;
--   peak|GiB|.4g|right; n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: layers 0: all layers. No credit for a causal mask.
SELECT params ->> '$.model' AS model, params ->> '$.d_model' AS d_model,
       params ->> '$.d_ff' AS d_ff, params ->> '$.layers' AS layers,
       params ->> '$.heads' AS heads, params ->> '$.vocab' AS vocab,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, params ->> '$.mode' AS mode,
       implementation, time_ms, low_ms, high_ms, tflops,
       (SELECT max(value) FROM metric k
         WHERE k.attempt_id = v.attempt_id AND k.name = 'peak_bytes') / 1073741824 AS peak,
       n, noise, protocol, device, status, message, run_uid
  FROM v_measured v
 WHERE experiment = ?1 AND coalesce(role, '') NOT IN ('predicted', 'sharded') AND world_size = 1
 ORDER BY model, d_model, d_ff, heads, vocab, context, precision, batch, mode DESC, implementation, layers;
