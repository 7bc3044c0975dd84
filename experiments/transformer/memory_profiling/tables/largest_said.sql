-- sentence: In forward of {model} at context {context} ({precision}, {implementation}, {device}) the largest
--   allocations are {list}{origin}.
-- experiment: memory_profiling
-- with: memory_profiling/largest
-- fills: e
-- columns: model|1|s|left; context|1|d|right; precision|1|s|left; implementation|1|code|left; device|1|s|left;
--   list|1|s|left; origin|1|s|left
named AS (
  SELECT ranked.*, bytes / s.value AS matrices,
         iif(s.value >= 1000 * 1048576,
             printf('%#.4g GiB', s.value / 1073741824), printf('%#.4g MiB', s.value / 1048576)) AS matrix,
         first_value(params ->> '$.context') OVER (PARTITION BY device, implementation, params ->> '$.precision'
ORDER BY params ->> '$.context' <> 512, params ->> '$.context' DESC) AS asked_first,
         max(iif(tag LIKE 'layers.%', times, NULL)) OVER (PARTITION BY ranked.attempt_id) AS blocks,
         iif(bytes >= 1073741824,
             printf('%.4g GiB', bytes / 1073741824.0), printf('%.4g MiB', bytes / 1048576.0)) AS size,
         -- What a workspace holds tells its size: as large as the weights that attention keeps, or three matrices of
         -- tokens × vocabulary.
         CASE WHEN tag LIKE '%attn.kept' THEN 'softmax''s exponentials and weights'
              WHEN tag = 'workspace' AND bytes IN (SELECT k.bytes FROM ranked k
                                                    WHERE k.attempt_id = ranked.attempt_id AND k.tag LIKE '%attn.kept')
                THEN 'attention''s scores'
              WHEN tag = 'workspace' AND abs(bytes / (12.0 * (params ->> '$.batch') * (params ->> '$.context')
                                                        * coalesce(nullif(params ->> '$.vocab', 0), 10000)) - 1) < 0.01
                THEN 'logits and loss'
              WHEN tag LIKE '%ffn.gate_up' THEN 'both inputs of SwiGLU'
              ELSE printf('`%s`', replace(tag, 'layers.*.', '')) END AS name
    FROM ranked
    LEFT JOIN metric s ON s.attempt_id = ranked.attempt_id AND s.name = 'scores_bytes'
   WHERE place <= 4
),
-- Equal ones of all blocks are one sum: an inference frees a block's before the next block takes its own.
told AS (
  SELECT *, coalesce(times = blocks AND blocks > 1, 0) AS of_blocks,
         printf('%s (%s%s)', name,
                -- Tensors of one size that are allocated at once.
                iif(parts = 1, size,
                    printf('%d × %s', parts,
                           CASE WHEN of_scores THEN matrix
                                WHEN bytes >= parts * 1073741824 THEN printf('%.4g GiB', bytes / parts / 1073741824.0)
                                ELSE printf('%.5g MiB', coalesce(logits, bytes / parts) / 1048576.0) END)),
                CASE WHEN times > 1 AND times <> coalesce(blocks, 0) THEN printf(', %d times', times)
                     WHEN name = 'logits and loss' THEN ', tokens × vocabulary'
                     WHEN of_scores THEN ', B·H·T²' ELSE '' END) AS text
    FROM (SELECT *, iif(name = 'logits and loss', 4.0 * (params ->> '$.batch') * (params ->> '$.context')
                                                    * coalesce(nullif(params ->> '$.vocab', 0), 10000), NULL) AS logits,
                 CASE WHEN of_scores THEN CAST(round(matrices) AS INTEGER) WHEN name = 'logits and loss' THEN 3
                      WHEN name = 'both inputs of SwiGLU' THEN 2 ELSE 1 END AS parts
            FROM (SELECT *, coalesce((tag LIKE '%attn.kept' OR name = 'attention''s scores') AND matrices >= 1.5
                                     AND abs(matrices / round(matrices) - 1) < 0.01, 0) AS of_scores FROM named))
   ORDER BY place
)
SELECT params ->> '$.model' AS model, params ->> '$.context' AS context,
       params ->> '$.precision' AS "precision", implementation, device,
       coalesce(printf('in each of %d blocks: ', max(blocks))
                || nullif(group_concat(iif(of_blocks, text, NULL), ', '), ''), '')
         || iif(min(of_blocks) < max(of_blocks), '; once: ', '')
         || coalesce(group_concat(iif(of_blocks, NULL, text), ', '), '') AS list,
       coalesce(max(iif(tag LIKE '%attn.kept' AND matrices >= 0.99,
                        iif(round(matrices) = 1,
                            printf('; what softmax keeps is one matrix of B·H·T² scores, %s', matrix),
                            iif(of_scores, NULL,
                                printf('; what softmax keeps, exponentials and weights, '
                                       || 'is %.3g matrices of B·H·T² scores (%s)', matrices, matrix))), NULL)),
                '') AS origin, max(run_uid) AS run_uid
  FROM told
 WHERE params ->> '$.context' = asked_first
 GROUP BY attempt_id
 ORDER BY device, "precision" <> 'fp32', "precision", implementation;
