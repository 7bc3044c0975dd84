-- sentence: One block of {model} at context {context} ({precision}, {implementation}, {device}) keeps {total} for
--   backward{forecast}: mainly {list}.
-- experiment: memory_profiling
-- with: memory_profiling/block_residuals
-- fills: f
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left;
--   total|MiB|.4b|right; forecast|1|s|left; list|1|s|left
SELECT model, context, "precision", implementation, device, total,
       forecast, group_concat(text, ', ') AS list, max(run_uid) AS run_uid
  FROM (SELECT c.attempt_id, c.params ->> '$.model' AS model,
               c.params ->> '$.context' AS context, c.params ->> '$.precision' AS "precision",
               c.implementation, c.device, m.total / 1048576.0 AS total, c.run_uid,
               coalesce((SELECT iif(abs(e.value / m.total - 1) < 0.0005,
                                    '', printf(' (by its shapes: %.4g)', e.value / 1048576)) FROM metric e
                          WHERE e.attempt_id = c.attempt_id AND e.name = 'predicted_block_bytes'), '') AS forecast,
               printf('%s (%.3g %%)',
                      CASE m.tensor WHEN 'attn.kept' THEN 'what softmax keeps'
                                    WHEN 'ffn.gate_up' THEN 'both inputs of SwiGLU'
                                    WHEN 'ffn.gated' THEN 'its output' WHEN 'attn.qkv' THEN 'Q, K and V'
                                    WHEN 'ln1.normalized' THEN 'the first norm''s output'
                                    WHEN 'ln2.normalized' THEN 'the second norm''s output'
                                    WHEN 'attn.merged' THEN 'the heads'' output' ELSE printf('`%s`', m.tensor) END,
                      100.0 * m.bytes / m.total) AS text
          FROM middle m
          JOIN chosen c ON c.attempt_id = m.attempt_id
         WHERE m.place <= 5
         ORDER BY m.place)
 GROUP BY attempt_id
 ORDER BY device, "precision" <> 'fp32', "precision", context DESC, implementation;
