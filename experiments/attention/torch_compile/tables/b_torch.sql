-- sentence: `torch.compile` itself (PyTorch{version}, {device}, {precision}) speeds a step up {gains}.
-- experiment: torch_compile
-- command: python3 tools/peers/transformer.py time --models small,medium --contexts 512 --precisions fp32 --phases
--   forward,step
-- fills: b
-- columns: version|1|s|left; device|1|s|left; precision|1|s|left; gains|1|s|left
WITH step AS MATERIALIZED (
  SELECT p.*, row_number() OVER (PARTITION BY p.point, p.comparability_key, p.protocol, p.implementation
                                     ORDER BY p.run_order DESC) AS newest
    FROM v_pass p
   WHERE p.what = 'step' AND p.place = 1 AND NOT p.within
),
pair AS (
  SELECT e.comparability_key, e.protocol, e.context, e."precision", e.model,
         e.ms AS eager, c.ms AS compiled, c.run_uid, c.facts ->> '$.torch' AS version
    FROM step e
    JOIN step c ON c.model = e.model AND c.context = e.context
               AND c."precision" = e."precision" AND c.comparability_key = e.comparability_key
               AND c.protocol = e.protocol AND c.implementation GLOB 'pytorch_compiled*' AND c.newest = 1
   WHERE e.implementation GLOB 'pytorch_eager*' AND e.newest = 1
)
SELECT coalesce(' ' || max(substr(version, 1, instr(version || '+', '+') - 1)) , '') AS version,
       (SELECT coalesce(v.gpu_name, v.cpu_model) FROM v_environment v
         WHERE v.comparability_key = p.comparability_key LIMIT 1) AS device, "precision",
       group_concat(printf('%.3g× for %s (%.4g to %.4g ms)', eager / compiled, model, eager, compiled),
                    ' and ') AS gains, max(run_uid) AS run_uid
  FROM (SELECT * FROM pair ORDER BY eager) p
 GROUP BY comparability_key, protocol, context, "precision"
 ORDER BY device, context, "precision" <> 'fp32';
