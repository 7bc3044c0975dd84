-- title: Leaderboard 2026: the 8B step with FSDP
-- caption: Median step time, with its 95 % interval where there are several steps, slowest rank. Phases are each of its
--   slowest rank and may add up to more.
-- about segment: `segment`: blocks per checkpoint segment; the last one is not recomputed.
-- about floor: `floor`: matrix products alone at 989 TFLOP/s a GPU (H100 and H200, bf16).
-- about floor_again: `with recomputed`: this case's recomputation included.
-- about floor_all: `all recomputed`: all blocks and attention scores.
-- about peak, forecast: `peak` is the highest of a rank, `forecast` the predicted one.
-- experiment: leaderboard_2026
-- command: syslab run leaderboard_2026 --preset two_gpus
-- columns: model?|1|s|left; @sizes; batch|1|d|right; context|1|d|right; precision|1|s|left; ranks|1|d|right;
--   backend?|1|s|left; segment|1|s|right; implementation?|1|code|left; time_ms as time|ms|ci(low_ms, high_ms)|right;
--   floor|s|.3g|right; floor_again as with recomputed|s|.3g|right; floor_all as all recomputed|s|.3g|right;
--   forward|ms|.4g|right; backward|ms|.4g|right; updating as update|ms|.3g|right; exposed|ms|.3g|right;
--   peak|GiB|.4g|right; forecast|GiB|.4g|right; state|GiB|.4g|right; n|1|d|right; noise?|1|s|left; protocol?|1|s|left;
--   device?|1|s|left; status|1|status|left
-- note: `segment`: blocks per checkpoint segment; the last segment is not recomputed. `exposed`: compute waiting for
--   all-gathers. `batch` is the global batch. Floors are of GPUs only.
WITH t AS MATERIALIZED (
  SELECT *, metrics AS found, backend = 'shm' AS on_cpu, 1 / (world_size * 989e12) AS seconds_of_one
    FROM v_measured v
   WHERE experiment = ?1 AND role = 'sharded' AND status <> 'skipped'
     -- What another protocol has measured is not shown by one step of `quick`.
     AND NOT (protocol = 'quick' AND EXISTS (SELECT 1 FROM v_measured o
                                              WHERE o.experiment = ?1 AND o.case_id = v.case_id
                                                AND o.implementation = v.implementation
                                                AND o.world_size = v.world_size AND o.gpu_name IS v.gpu_name
                                                AND o.is_good AND o.protocol <> 'quick'))
)
SELECT params ->> '$.model' AS model, params ->> '$.d_model' AS d_model,
       params ->> '$.d_ff' AS d_ff, params ->> '$.layers' AS layers,
       params ->> '$.heads' AS heads, params ->> '$.vocab' AS vocab,
       params ->> '$.batch' AS batch, params ->> '$.context' AS context,
       params ->> '$.precision' AS "precision", world_size AS ranks, backend,
       CASE params ->> '$.segment' WHEN 0 THEN 'all kept'
                                   ELSE printf('%g', params ->> '$.segment') END AS segment, implementation,
       time_ms, low_ms, high_ms, iif(on_cpu, '–', (found ->> '$.floor_flops') * seconds_of_one) AS "floor",
       iif(on_cpu, '–', (found ->> '$.segment_flops') * seconds_of_one) AS floor_again,
       iif(on_cpu, '–', (found ->> '$.recompute_flops') * seconds_of_one) AS floor_all,
       1e3 * (found ->> '$.forward') AS forward,
       1e3 * (found ->> '$.backward') AS backward, 1e3 * (found ->> '$.update') AS updating,
       1e3 * ((found ->> '$.exposed_forward') + (found ->> '$.exposed_backward')) AS exposed,
       (found ->> '$.peak_bytes') / 1073741824 AS peak,
       (found ->> '$.predicted_bytes') / 1073741824 AS forecast,
       (found ->> '$.state_bytes') / 1073741824 AS state, n, noise, protocol, device,
       status, message, facts -> '$.needs' AS needs, run_uid
  FROM t
 ORDER BY model, d_model, d_ff, layers, heads, vocab, batch, context,
          "precision", ranks, row_order, params ->> '$.segment' DESC;
