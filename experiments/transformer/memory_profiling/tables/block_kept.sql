-- sentence: One block of {model} at context {context} ({precision}, {implementation}, {device}) keeps {total} for backward, the five largest being
--   {list}.
-- experiment: memory_profiling
-- with: memory_profiling/block_residuals
-- fills: f
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left; total|MiB|.4b|right; list|1|s|left
SELECT model, context, "precision", implementation, device, total, group_concat(text, ', ') AS list, max(run_uid) AS run_uid
  FROM (SELECT c.attempt_id, c.params ->> '$.model' AS model, c.params ->> '$.context' AS context, c.params ->> '$.precision' AS "precision", c.implementation, c.device,
               m.total / 1048576.0 AS total, c.run_uid, printf('`%s` %.3g %%', m.tensor, 100.0 * m.bytes / m.total) AS text
          FROM middle m
          JOIN chosen c ON c.attempt_id = m.attempt_id
         WHERE m.place <= 5
         ORDER BY m.place)
 GROUP BY attempt_id
 ORDER BY device, "precision" <> 'fp32', "precision", context DESC, implementation;
