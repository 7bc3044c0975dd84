-- sentence: Besides matrix products, forward of {model} (context {context}, {precision}, {implementation}, {device})
--   spends most on {list}; non-matmul kernels take {share} % of kernel time.
-- experiment: nsys_profile
-- fills: c
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left;
--   list|1|s|left; share|%|.3g|right
WITH chosen AS (
  SELECT v.attempt_id, row_number() OVER (PARTITION BY v.comparability_key, v.implementation
                                              ORDER BY p.value DESC, v.params ->> '$.context' DESC,
                                                       v.params ->> '$.precision' <> 'fp32',
                                                       v.attempt_uid) AS place
    FROM v_measured v
    JOIN metric p ON p.attempt_id = v.attempt_id AND p.name = 'parameters'
   WHERE v.experiment = ?1 AND v.is_good
),
others AS (
  SELECT k.attempt_id, k.params, k.implementation, k.device, k.run_uid, k.operation, sum(k.share) AS share,
         row_number() OVER (PARTITION BY k.attempt_id ORDER BY sum(k.share) DESC, k.operation) AS place
    FROM v_kernel k
    JOIN chosen c ON c.attempt_id = k.attempt_id AND c.place = 1
   WHERE k.phase = 'forward' AND k.kind <> 'matrix products'
   GROUP BY k.attempt_id, k.operation
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context,
       params ->> '$.precision' AS precision, implementation, device,
       (SELECT group_concat(printf('%s (%.2g %%)',
                                   CASE o.operation WHEN 'attention.scores' THEN 'scaling and masking scores'
                                                    WHEN 'attention.softmax' THEN 'softmax' WHEN 'rope' THEN 'RoPE'
                                                    WHEN 'swiglu' THEN 'SwiGLU' WHEN 'rms_norm' THEN 'RMSNorm'
                                                    ELSE o.operation END, o.share), ', ')
          FROM (SELECT * FROM others x WHERE x.attempt_id = others.attempt_id AND x.place <= 4
                 ORDER BY x.place) o) AS list, sum(share) AS share, max(run_uid) AS run_uid
  FROM others
 GROUP BY attempt_id
 ORDER BY device, implementation;
