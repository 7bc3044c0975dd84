-- title: FlashAttention-2 benchmark: forward + backward over the grid
-- caption: Median times of forward and backward, unfused attention (products in the inputs' dtype) → FlashAttention-2
--   (in fp32 with TF32 products).
--   Batch 1, one head, causal. Tiles are those of “FlashAttention-2 forward pass: by shape”, also with TF32 products.
--   †: measured on another GPU. Both sides of a cell are from one run. OOM: that side ran out of that GPU's memory.
--   Protocol do_bench is Triton's: 25 ms of warm-up, 100 ms of repeats.
-- experiment: flash_benchmarking
-- empty: The grid compares kernels on a GPU; none ran here. The other rungs are in the next table.
-- fills: *
-- blank: –
-- columns: seq as T|1|d|right; bf16_16 as bf16 d = 16|ms|s|right; bf16_32 as bf16 d = 32|ms|s|right;
--   bf16_64 as bf16 d = 64|ms|s|right; bf16_128 as bf16 d = 128|ms|s|right; fp32_16 as fp32 d = 16|ms|s|right;
--   fp32_32 as fp32 d = 32|ms|s|right; fp32_64 as fp32 d = 64|ms|s|right; fp32_128 as fp32 d = 128|ms|s|right;
--   bf16_by as bf16 by?|1|code|left; fp32_by as fp32 by?|1|code|left; protocol?|1|s|left;
--   device as cells without † on?|1|s|left; marked as cells with † on?|1|s|left
WITH m AS MATERIALIZED (
  SELECT v.*, params ->> '$.seq' AS seq, params ->> '$.dtype' AS dtype, params ->> '$.head_dim' AS d,
         CASE WHEN status = 'oom' THEN 'OOM' WHEN is_good THEN printf('%.3g', time_ms) END AS told
    FROM v_measured v
   WHERE experiment = ?1 AND NOT is_mine AND measured_here AND params ->> '$.pass' = 'both' AND ending <> 'not_asked'
),
cell AS (
  SELECT o.seq, o.dtype, o.d, o.implementation, o.comparability_key AS key, o.device,
         o.protocol, l.told || ' → ' || o.told AS shown, max(o.run_uid, l.run_uid) AS run_uid,
         count(*) OVER (PARTITION BY o.comparability_key, o.protocol) AS many
    FROM m o
    JOIN v_rung r ON r.run_uid = o.run_uid AND r.experiment = o.experiment AND r.implementation = o.implementation
    JOIN m l ON l.params = o.params AND l.comparability_key = o.comparability_key
            AND l.protocol = o.protocol AND l.role = 'literal'
   WHERE r.is_general AND r.device = 'cuda' AND r.tf32 = (o.dtype = 'fp32')
     AND l.told IS NOT NULL AND o.told IS NOT NULL
),
-- The machine with most cells, and of others what it has not, each with its mark.
ranked AS (
  SELECT *, first_value(key) OVER best AS main, first_value(device) OVER best AS main_device,
         first_value(protocol) OVER best AS main_protocol,
         row_number() OVER (PARTITION BY seq, dtype, d ORDER BY many DESC, key, protocol) AS nth
    FROM cell
  WINDOW best AS (ORDER BY many DESC, key, protocol)
),
marked AS (SELECT *, shown || iif(key = main, '', ' †') AS told FROM ranked WHERE nth = 1)
SELECT seq,
       max(iif(dtype = 'bf16' AND d = 16, told, NULL)) AS bf16_16,
       max(iif(dtype = 'bf16' AND d = 32, told, NULL)) AS bf16_32,
       max(iif(dtype = 'bf16' AND d = 64, told, NULL)) AS bf16_64,
       max(iif(dtype = 'bf16' AND d = 128, told, NULL)) AS bf16_128,
       max(iif(dtype = 'fp32' AND d = 16, told, NULL)) AS fp32_16,
       max(iif(dtype = 'fp32' AND d = 32, told, NULL)) AS fp32_32,
       max(iif(dtype = 'fp32' AND d = 64, told, NULL)) AS fp32_64,
       max(iif(dtype = 'fp32' AND d = 128, told, NULL)) AS fp32_128,
       max(iif(dtype = 'bf16', implementation, NULL)) AS bf16_by,
       max(iif(dtype = 'fp32', implementation, NULL)) AS fp32_by, main_protocol AS protocol, main_device AS device,
       (SELECT group_concat(DISTINCT m.device) FROM marked m WHERE m.key <> m.main) AS marked, max(run_uid) AS run_uid
  FROM marked
 GROUP BY seq
 ORDER BY seq;
