-- sentence: In forward of {model} at context {context} ({precision}, {implementation}, {device}) the largest allocations are {list}. {origin}
-- experiment: memory_profiling
-- with: memory_profiling/largest
-- fills: e
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left; list|1|s|left; origin|1|s|left
told AS (
  SELECT *, max(params ->> '$.context') OVER (PARTITION BY device, implementation, params ->> '$.precision') AS longest,
         -- What a workspace holds tells its size: as large as the weights that attention keeps, or three matrices of tokens × vocabulary.
         printf('%s (%d × %s)', CASE WHEN tag LIKE '%attn.kept' THEN 'attention weights (`attn.kept`)'
                                     WHEN tag = 'workspace' AND bytes IN (SELECT k.bytes FROM ranked k WHERE k.attempt_id = ranked.attempt_id AND k.tag LIKE '%attn.kept')
                                       THEN 'attention scores (`workspace`)'
                                     WHEN tag = 'workspace' AND abs(bytes / (12.0 * (params ->> '$.batch') * (params ->> '$.context') * coalesce(nullif(params ->> '$.vocab', 0), 10000)) - 1) < 0.01
                                       THEN 'logits and loss (`workspace`)'
                                     ELSE printf('`%s`', replace(tag, 'layers.*.', '')) END, times, CASE WHEN bytes >= 1073741824 THEN printf('%.4g GiB', bytes / 1073741824.0) ELSE printf('%.4g MiB', bytes / 1048576.0) END) AS text
    FROM ranked
   WHERE place <= 3
   ORDER BY place
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context, params ->> '$.precision' AS "precision", implementation, device,
       group_concat(text, ', ') AS list,
       iif(max(tag LIKE '%attn.%') AND params ->> '$.context' >= 512,
           'Scores and weights of attention are B·H·T² values each.',
           'They are named by the tensor that they hold.') AS origin, max(run_uid) AS run_uid
  FROM told
 WHERE params ->> '$.context' = longest
 GROUP BY attempt_id
 ORDER BY device, "precision" <> 'fp32', "precision", implementation;
