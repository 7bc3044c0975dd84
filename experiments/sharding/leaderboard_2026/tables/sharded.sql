-- title: The 8B step on several GPUs, fully sharded
-- caption: Measured steps of all ranks together: median with its 95 % interval, of the slowest rank at each. Beside them the floors: what the
--   products alone would take at 989 TFLOP/s a GPU, what their maker names for an H100 or H200 in bf16; `floor, again` with those blocks that
--   are run again, `floor, all again` with all of them and attention's scores made twice in the backward pass. `peak` is the most that
--   a rank held, `forecast` the same by arithmetic. Only of steps that were certified to the bit on these ranks.
-- experiment: leaderboard_2026
-- command: syslab run leaderboard_2026 --preset two_gpus
-- columns: model?|1|s|left; @sizes; batch|1|d|right; context|1|d|right; precision|1|s|left; ranks|1|d|right; backend?|1|s|left;
--   segment|1|s|right; implementation?|1|code|left; time_ms as time|ms|ci(low_ms, high_ms)|right; floor|s|.3g|right;
--   floor_again as floor, again|s|.3g|right; floor_all as floor, all again|s|.3g|right; forward|ms|.4g|right; backward|ms|.4g|right;
--   updating as update|ms|.3g|right; exposed|ms|.3g|right; peak|GiB|.4g|right; forecast|GiB|.4g|right; state|GiB|.4g|right; n|1|d|right;
--   noise?|1|s|left; protocol?|1|s|left; device?|1|s|left; status|1|status|left
-- note: `segment` counts the blocks of which no more than the first stream is kept until the backward pass runs them again, the last such group but
--   for; 0: all is kept. `exposed` is what computing waited for gathers. `batch` is of all ranks together. Floors are of GPUs alone.
WITH t AS MATERIALIZED (
  SELECT *, metrics AS found, backend = 'shm' AS on_cpu, 1 / (world_size * 989e12) AS seconds_of_one
    FROM v_measured
   WHERE experiment = ?1 AND implementation IN ('fsdp', 'fsdp_host') AND status <> 'skipped'
)
SELECT params ->> '$.model' AS model, params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff, params ->> '$.layers' AS layers,
       params ->> '$.heads' AS heads, params ->> '$.vocab' AS vocab,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context,
       params ->> '$.precision' AS "precision", world_size AS ranks, backend,
       CASE params ->> '$.segment' WHEN 0 THEN 'all kept' ELSE printf('%g', params ->> '$.segment') END AS segment, implementation,
       time_ms, low_ms, high_ms, iif(on_cpu, '–', (found ->> '$.floor_flops') * seconds_of_one) AS "floor",
       iif(on_cpu, '–', (found ->> '$.segment_flops') * seconds_of_one) AS floor_again,
       iif(on_cpu, '–', (found ->> '$.recompute_flops') * seconds_of_one) AS floor_all, 1e3 * (found ->> '$.forward') AS forward,
       1e3 * (found ->> '$.backward') AS backward, 1e3 * (found ->> '$.update') AS updating,
       1e3 * ((found ->> '$.exposed_forward') + (found ->> '$.exposed_backward')) AS exposed, (found ->> '$.peak_bytes') / 1073741824 AS peak,
       (found ->> '$.predicted_bytes') / 1073741824 AS forecast, (found ->> '$.state_bytes') / 1073741824 AS state, n, noise, protocol, device,
       status, message, run_uid
  FROM t
 ORDER BY model, d_model, d_ff, layers, heads, vocab, batch, context, "precision", ranks, row_order, params ->> '$.segment' DESC;
