-- title: FlashAttention-2 forward pass: by shape
-- caption: Median time of one call and its rate, causal, by length T and head dimension d, of kernels that every newer
--   GPU runs. Protocol kernel: inputs outside the caches, 20 calls or more until the median is known to 0.5 % or 3 s
--   are over.
-- about bf16_naive, fp32_naive: `vs naive`: speed-up over the kernel that materialises the scores, in the same run.
-- about bf16_tile, fp32_tile: Tile: queries × keys at most, fewer queries for few heads.
-- experiment: flash_forward
-- fills: *
-- empty: The shapes compare kernels on a GPU; none ran here.
-- columns: seq as T|1|d|right; d|1|d|right; bf16|ms|.3g|right; bf16_rate as rate|TFLOP/s|.3g|right;
--   bf16_naive as vs naive|×|.3g|right; bf16_tile as tile|1|s|right;
--   fp32|ms|.3g|right; fp32_rate as rate|TFLOP/s|.3g|right; fp32_naive as vs naive|×|.3g|right;
--   fp32_tile as tile|1|s|right; bf16_by as bf16 by?|1|code|left; fp32_by as fp32 by?|1|code|left;
--   batch?|1|d|right; heads?|1|d|right; protocol?|1|s|left; device?|1|s|left
WITH m AS MATERIALIZED (
  SELECT v.*, params ->> '$.seq' AS seq, params ->> '$.head_dim' AS d,
         params ->> '$.dtype' AS dtype, params ->> '$.batch' AS batch,
         params ->> '$.heads' AS heads,
         (SELECT j.value
            FROM json_each(r.facts) j
           WHERE j.key GLOB 'forward_tile_*' AND CAST(substr(j.key, 14) AS INTEGER) >= params ->> '$.head_dim'
           ORDER BY CAST(substr(j.key, 14) AS INTEGER)
           LIMIT 1) AS tile
    FROM v_measured v
    JOIN v_rung r ON r.run_uid = v.run_uid AND r.experiment = v.experiment AND r.implementation = v.implementation
   WHERE v.experiment = ?1 AND is_good AND NOT is_mine AND params ->> '$.causal' = 1 AND params ->> '$.seq_k' = 0
     AND r.is_general AND r.device = 'cuda' AND NOT r.tf32
),
g AS (
  SELECT comparability_key, protocol, device, batch, heads, seq, d,
         max(iif(dtype = 'bf16', time_ms, NULL)) AS bf16, max(iif(dtype = 'bf16', tflops, NULL)) AS bf16_rate,
         max(iif(dtype = 'bf16' AND vs_from = 'one run', vs_naive, NULL)) AS bf16_naive,
         max(iif(dtype = 'fp32', time_ms, NULL)) AS fp32, max(iif(dtype = 'fp32', tflops, NULL)) AS fp32_rate,
         max(iif(dtype = 'fp32' AND vs_from = 'one run', vs_naive, NULL)) AS fp32_naive, max(run_uid) AS run_uid,
         max(iif(dtype = 'bf16', implementation, NULL)) AS bf16_by,
         max(iif(dtype = 'fp32', implementation, NULL)) AS fp32_by,
         max(iif(dtype = 'bf16', tile, NULL)) AS bf16_tile, max(iif(dtype = 'fp32', tile, NULL)) AS fp32_tile
    FROM m
   GROUP BY comparability_key, protocol, device, batch, heads, seq, d
),
counted AS (SELECT *, count(*) OVER (PARTITION BY comparability_key, protocol, batch, heads) AS many FROM g),
ranked AS (SELECT *, dense_rank() OVER (ORDER BY many DESC, comparability_key, protocol, batch, heads) AS nth
             FROM counted)
SELECT seq, d, bf16, bf16_rate, bf16_naive, bf16_tile, fp32, fp32_rate, fp32_naive, fp32_tile,
       bf16_by, fp32_by, batch, heads, protocol, device, run_uid
  FROM ranked
 WHERE nth = 1
 ORDER BY seq, d;
