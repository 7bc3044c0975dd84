-- title: Slices of the 8B model, and the whole on one GPU
-- caption: Measured steps of the model with few of its layers, and of the whole where it fits: a row that reads OOM is the answer that it does
--   not. Median with its 95 % interval.
-- experiment: leaderboard_2026
-- command: syslab run leaderboard_2026 --preset slices
-- columns: model?|1|s|left; layers|1|d|right; d_model?|1|d|right; d_ff?|1|d|right; heads?|1|d|right; vocab?|1|d|right; batch|1|d|right;
--   context|1|d|right; precision|1|s|left; mode?|1|s|left; @timed; tflops as rate|TFLOP/s|.4g|right;
--   peak|GiB|.4g|right; n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: layers 0: all that the model has. The rate gives no credit for what a causal mask spares.
SELECT params ->> '$.model' AS model, params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff, params ->> '$.layers' AS layers,
       params ->> '$.heads' AS heads, params ->> '$.vocab' AS vocab,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, params ->> '$.mode' AS mode, implementation, time_ms, low_ms, high_ms, tflops,
       (SELECT max(value) FROM metric k WHERE k.attempt_id = v.attempt_id AND k.name = 'peak_bytes') / 1073741824 AS peak, n, noise,
       protocol, device, status, message, run_uid
  FROM v_measured v
 WHERE experiment = ?1 AND implementation NOT IN ('predicted', 'predicted_eager', 'fsdp', 'fsdp_host') AND world_size = 1
 ORDER BY model, d_model, d_ff, heads, vocab, context, precision, batch, mode DESC, implementation, layers;
