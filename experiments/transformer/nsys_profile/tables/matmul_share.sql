-- title: Profiling: share of matrix products
-- caption: Share of matrix products in kernel time, for forward, forward + backward and the whole step. – = not
--   applicable.
-- blank: –
-- experiment: nsys_profile
-- fills: d
-- columns: model|1|s|left; batch?|1|d|right; context|1|d|right; precision|1|s|left; mode?|1|s|left;
--   implementation|1|code|left; forward|%|.3g|right; both as forward + backward|%|.3g|right; step|%|.3g|right;
--   fused as fused attention, of the step|%|.3g|right; softmax as softmax, of the step|%|.3g|right;
--   optimizer as AdamW, of the step|%|.3g|right; protocol?|1|s|left; device?|1|s|left
-- note: Fused attention (`flash_…`) contains its matrix products and is listed apart.
WITH sums AS (
  SELECT attempt_id, params, implementation, protocol, device, run_uid,
         sum(ms) FILTER (WHERE phase = 'forward') AS f,
         sum(ms) FILTER (WHERE phase = 'forward' AND kind = 'matrix products') AS fp,
         sum(ms) FILTER (WHERE phase IN ('forward', 'backward')) AS fb,
         sum(ms) FILTER (WHERE phase IN ('forward', 'backward') AND kind = 'matrix products') AS fbp,
         sum(ms) FILTER (WHERE phase = '') AS s, sum(ms) FILTER (WHERE phase = '' AND kind = 'matrix products') AS sp,
         sum(ms) FILTER (WHERE phase = '' AND kind = 'softmax') AS softmax,
         sum(ms) FILTER (WHERE phase = '' AND operation = 'attention') AS fused,
         sum(ms) FILTER (WHERE phase = '' AND operation LIKE 'attention.scores%') AS parts,
         sum(ms) FILTER (WHERE phase = '' AND kind = 'optimizer') AS optimizer
    FROM v_kernel
   WHERE experiment = ?1 AND is_good
   GROUP BY attempt_id
)
SELECT params ->> '$.model' AS model, params ->> '$.batch' AS batch,
       params ->> '$.context' AS context, params ->> '$.precision' AS precision,
       params ->> '$.mode' AS mode, implementation,
       100 * fp / f AS forward, iif(params ->> '$.mode' = 'forward', NULL, 100 * fbp / fb) AS both,
       iif(params ->> '$.mode' = 'train', 100 * sp / s, NULL) AS step,
       iif(parts IS NULL, 100 * fused / s, NULL) AS fused,
       iif(parts IS NULL, NULL, 100 * coalesce(softmax, 0) / s) AS softmax,
       iif(params ->> '$.mode' = 'train', 100 * coalesce(optimizer, 0) / s, NULL) AS optimizer,
       protocol, device, run_uid
  FROM sums
 ORDER BY s, model, context, precision, mode, device, protocol, implementation;
