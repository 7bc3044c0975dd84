-- sentence: From inference to a whole training step of {model} (context {context}, {precision}, {implementation}, {device}) the share of
--   matrix products goes from {forward} % to {step} %; AdamW takes {optimizer} % of the step, softmax goes from {softmax_forward} % to
--   {softmax_step} %, norms, SwiGLU, RoPE and casts from {between_forward} % to {between_step} %.
-- experiment: nsys_profile
-- fills: d
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left; forward|%|.3g|right;
--   step|%|.3g|right; optimizer|%|.3g|right; softmax_forward|%|.2g|right; softmax_step|%|.2g|right; between_forward|%|.3g|right;
--   between_step|%|.3g|right
WITH chosen AS (
  SELECT v.attempt_id, row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                              ORDER BY p.value DESC, v.params ->> '$.context' DESC, v.params ->> '$.precision' <> 'fp32',
                                                       v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good AND v.params ->> '$.mode' = 'train'
),
shares AS (
  SELECT k.attempt_id, k.params, k.implementation, k.device, k.run_uid, k.phase, k.kind, k.share
    FROM v_kernel k
    JOIN chosen c ON c.attempt_id = k.attempt_id AND c.place = 1
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context, params ->> '$.precision' AS precision, implementation, device,
       total(share) FILTER (WHERE phase = 'forward' AND kind = 'matrix products') AS forward,
       total(share) FILTER (WHERE phase = '' AND kind = 'matrix products') AS step,
       total(share) FILTER (WHERE phase = '' AND kind = 'optimizer') AS optimizer,
       total(share) FILTER (WHERE phase = 'forward' AND kind = 'softmax') AS softmax_forward,
       total(share) FILTER (WHERE phase = '' AND kind = 'softmax') AS softmax_step,
       total(share) FILTER (WHERE phase = 'forward' AND kind = 'norm, SwiGLU, RoPE, casts') AS between_forward,
       total(share) FILTER (WHERE phase = '' AND kind = 'norm, SwiGLU, RoPE, casts') AS between_step, max(run_uid) AS run_uid
  FROM shares
 GROUP BY attempt_id
 ORDER BY device, implementation;
