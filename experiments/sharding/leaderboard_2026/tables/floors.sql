-- sentence: On {ranks} × {gpu} a step of {model} (batch {batch}, context {context}, {precision}, {kept}, protocol
--   {protocol}) takes {seconds} s, {tokens} tokens/s. Matrix products alone would take {least} s at 989 TFLOP/s a GPU,
--   {again} s with this step's recomputation and {all_again} s with full recomputation. Peak memory of a rank is {peak}
--   GiB (predicted {forecast} GiB).
-- experiment: leaderboard_2026
-- command: syslab run leaderboard_2026 --preset two_gpus
-- columns: ranks|1|d|right; gpu|1|s|left; model|1|s|left; batch|1|d|right; context|1|d|right; precision|1|code|left;
--   kept|1|s|left; protocol|1|code|left; seconds|1|.4g|right; tokens|1|d|right; least|1|.3g|right; again|1|.3g|right;
--   all_again|1|.3g|right; peak|1|.4g|right; forecast|1|.4g|right
SELECT world_size AS ranks, gpu_name AS gpu, params ->> '$.model' AS model,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision,
       CASE params ->> '$.segment' WHEN 0 THEN 'no checkpointing'
                                   ELSE printf('checkpoint segments of %g blocks', params ->> '$.segment') END AS kept,
       protocol, 1e-3 * time_ms AS seconds,
       CAST(round((params ->> '$.batch') * (params ->> '$.context') / (1e-3 * time_ms)) AS INTEGER) AS tokens,
       (metrics ->> '$.floor_flops') / (world_size * 989e12) AS least,
       (metrics ->> '$.segment_flops') / (world_size * 989e12) AS again,
       (metrics ->> '$.recompute_flops') / (world_size * 989e12) AS all_again,
       (metrics ->> '$.peak_bytes') / 1073741824 AS peak,
       (metrics ->> '$.predicted_bytes') / 1073741824 AS forecast, run_uid
  FROM v_measured
 WHERE experiment = ?1 AND implementation = 'fsdp' AND is_good
   AND params ->> '$.model' = '8B' AND params ->> '$.layers' = 0
 ORDER BY ranks, gpu, batch DESC, context DESC, time_ms;
