-- sentence: From inference to a training step of {model} (context {context}, {precision}, {implementation}, {device})
--   the share of matrix products {goes} ({forward} % to {step} %); AdamW takes {optimizer} %, norms, SwiGLU and RoPE go
--   from {between_forward} % to {between_step} %, and {softmax}.
-- experiment: nsys_profile
-- fills: d
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left;
--   goes|1|s|left; forward|%|ci(forward_low, forward_high)|right; step|%|ci(step_low, step_high)|right;
--   optimizer|%|.3g|right; between_forward|%|.3g|right; between_step|%|.3g|right; softmax|1|s|left
WITH chosen AS (
  SELECT v.attempt_id, row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                              ORDER BY p.value DESC, v.params ->> '$.context' DESC,
                                                       v.params ->> '$.precision' <> 'fp32',
                                                       v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.mode' = 'train'
),
shares AS (
  SELECT k.attempt_id, k.params, k.implementation, k.device, k.run_uid, k.phase, k.kind, k.share
    FROM v_kernel k
    JOIN chosen c ON c.attempt_id = k.attempt_id AND c.place = 1
),
found AS (
  SELECT attempt_id, params, implementation, device, max(run_uid) AS run_uid,
         total(share) FILTER (WHERE phase = 'forward' AND kind = 'matrix products') AS forward,
         total(share) FILTER (WHERE phase = '' AND kind = 'matrix products') AS step,
         total(share) FILTER (WHERE phase = '' AND kind = 'optimizer') AS optimizer,
         iif(count(*) FILTER (WHERE kind = 'softmax') = 0, 'softmax is part of the fused attention kernel',
             printf('softmax from %.2g %% to %.2g %%',
                    total(share) FILTER (WHERE phase = 'forward' AND kind = 'softmax'),
                    total(share) FILTER (WHERE phase = '' AND kind = 'softmax'))) AS softmax,
         total(share) FILTER (WHERE phase = 'forward' AND kind = 'norm, SwiGLU, RoPE, casts') AS between_forward,
         total(share) FILTER (WHERE phase = '' AND kind = 'norm, SwiGLU, RoPE, casts') AS between_step
    FROM shares
   GROUP BY attempt_id
)
-- The medians of the recorded steps, with intervals; where no step had a product there are the sums alone, and they are
-- 0.
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, implementation, device,
       CASE WHEN s.ci_high < f.ci_low THEN 'falls' WHEN s.ci_low > f.ci_high THEN 'rises'
            WHEN s.ci_low IS NULL OR f.ci_low IS NULL THEN 'changes from too few samples to judge'
            ELSE 'does not change measurably' END AS goes,
       coalesce(100 * f.value, forward) AS forward, 100 * f.ci_low AS forward_low, 100 * f.ci_high AS forward_high,
       coalesce(100 * s.value, step) AS step, 100 * s.ci_low AS step_low,
       100 * s.ci_high AS step_high, optimizer, softmax, between_forward, between_step, run_uid
  FROM found
  LEFT JOIN metric f ON f.attempt_id = found.attempt_id AND f.name = 'forward_product_share'
  LEFT JOIN metric s ON s.attempt_id = found.attempt_id AND s.name = 'step_product_share'
 ORDER BY device, implementation;
