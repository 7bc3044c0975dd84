-- title: torch.compile: the whole model
-- caption: Mean of ten calls, op by op (`eager`) and fused by hand (`fused`); `step`: forward, backward and AdamW.
--   `forward` is timed alone where a case of its own ran, otherwise as a phase of the step, so it may differ a little
--   from “Benchmarking script”.
-- experiment: torch_compile
-- command: syslab run benchmarking_script --impl eager,fused
-- fills: b
-- columns: model|1|s|left; batch?|1|d|right; context|1|d|right; precision?|1|s|left; pass|1|s|left; eager|ms|.4g|right;
--   fused|ms|.4g|right; gain as eager / fused|×|.3g|right; torch_eager as PyTorch eager|ms|.4g|right;
--   torch_compiled as PyTorch compiled|ms|.4g|right; torch_gain as eager / compiled|×|.3g|right;
--   paired as both sides from?|1|s|left; protocol?|1|s|left; device?|1|s|left
-- note: A training step is timed by `benchmarking_script`, with a wait before and after each phase; forward alone by
--   `torch_compile`.
-- note: PyTorch's numbers come from tools/peers/transformer.py by `syslab import`: another program, timed by CUDA
--   events, outputs not compared.
WITH timed AS MATERIALIZED (SELECT * FROM v_pass)
SELECT e.model, e.batch, e.context, e."precision", e.what AS pass,
       e.mean_ms AS eager, f.mean_ms AS fused, e.mean_ms / f.mean_ms AS gain,
       p.mean_ms AS torch_eager, c.mean_ms AS torch_compiled, p.mean_ms / c.mean_ms AS torch_gain,
       CASE WHEN f.run_uid IS NULL
              THEN iif(EXISTS (SELECT 1 FROM v_newest n
                                WHERE n.experiment IN (?1, 'benchmarking_script') AND n.status = 'oom'
                                  AND n.implementation = 'fused' AND n.params ->> '$.model' = e.model
                                  AND n.params ->> '$.context' = e.context
                                  AND n.params ->> '$.precision' = e."precision"),
                       'fused ran out of memory', 'fused was not run')
            WHEN e.run_uid = f.run_uid THEN 'one run' ELSE 'different runs' END AS paired, e.protocol, e.device,
       max(e.run_uid, coalesce(f.run_uid, '')) AS run_uid
  FROM timed e
  -- A model that was measured op by op alone stands beside those that were fused.
  LEFT JOIN timed f ON f.point = e.point AND f.what = e.what AND f.within = e.within
                   AND f.comparability_key = e.comparability_key AND f.protocol = e.protocol
                   AND f.implementation = 'fused' AND f.place = 1
  LEFT JOIN timed p ON p.point = e.point AND p.what = e.what
                   AND p.comparability_key = e.comparability_key AND p.protocol = e.protocol
                   AND p.implementation GLOB 'pytorch_eager*' AND p.place = 1
  LEFT JOIN timed c ON c.point = e.point AND c.what = e.what
                   AND c.comparability_key = e.comparability_key AND c.protocol = e.protocol
                   AND c.implementation GLOB 'pytorch_compiled*' AND c.place = 1
 WHERE e.implementation = 'eager' AND e.what IN ('forward', 'step') AND e.place = 1
   AND (f.attempt_id IS NOT NULL
        OR (NOT EXISTS (SELECT 1 FROM timed x WHERE x.implementation = 'fused' AND x.what = e.what
                                                AND x.point = e.point AND x.comparability_key = e.comparability_key)
            AND EXISTS (SELECT 1 FROM timed x
                         WHERE x.implementation = 'fused' AND x.what = e.what
                           AND x.comparability_key = e.comparability_key
                           AND x.protocol = e.protocol AND x.context = e.context
                           AND x."precision" = e."precision" AND x.parameters < e.parameters)))
 GROUP BY e.attempt_id, e.what
 ORDER BY e.device LIKE 'NVIDIA%' DESC, e."precision" <> 'fp32', e."precision",
          e.context, e.parameters, e.what, e.device, e.protocol;
