-- title: Memory with and without optimizer state sharding
-- caption: Live bytes of the fullest rank by the allocator: after initialisation of model, gradients and moments;
--   before and after the optimizer step of the second step; and at that step's peak. “As PyTorch has it”: calculated,
--   without gradients and moments.
-- experiment: optimizer_state_sharding_accounting
-- fills: a
-- columns: model|1|s|left; @sizes; batch?|1|d|right; context?|1|d|right; precision?|1|s|left; ranks|1|d|right;
--   backend?|1|code|left; wire?|1|s|left; sharding|1|code|left; updates?|1|code|left;
--   bucket_mb as bucket limit?|MiB|d|right; implementation?|1|code|left; moment|1|s|left; total|GiB|.4g|right;
--   parameters|GiB|.4g|right; gradients|GiB|.4g|right; optimizer|GiB|.4g|right; activations|GiB|.4g|right;
--   others|GiB|.4g|right; device?|1|s|left
-- note: Gradients and moments are allocated at initialisation. PyTorch allocates them in the first step: `as PyTorch
--   has it` is the same moment without them. From the second step on both hold the same. Categories are each of their
--   fullest rank and may not add up to `total`.
WITH v AS MATERIALIZED (
  SELECT * FROM v_sharded_state WHERE experiment = ?1
),
moment(at, name, label, trains) AS (  -- trains: gradients and moments count
  VALUES (0, 'after_init', 'after initialisation', 1), (1, 'after_init', 'after initialisation, as PyTorch has it', 0),
         (2, 'before_update', 'before the update', 1),
         (3, 'after_update', 'after the update', 1), (4, 'peak', 'highest', 1)
)
SELECT v.model, v.params ->> '$.d_model' AS d_model, v.params ->> '$.d_ff' AS d_ff, v.params ->> '$.layers' AS layers,
       v.params ->> '$.heads' AS heads, v.params ->> '$.vocab' AS vocab,
       v.batch, v.context, v."precision", v.ranks, v.backend, v.wire,
       v.sharding, v.updates, v.bucket_mb, v.implementation, o.label AS moment,
       iif(o.trains, v.metrics ->> ('$.' || o.name),
           (v.metrics ->> ('$.' || o.name || '_parameters')) + (v.metrics ->> ('$.' || o.name || '_activations'))
           + (v.metrics ->> ('$.' || o.name || '_others'))) / 1073741824.0 AS total,
        (v.metrics ->> ('$.' || o.name || '_parameters')) / 1073741824.0 AS parameters,
       o.trains * (v.metrics ->> ('$.' || o.name || '_gradients')) / 1073741824.0 AS gradients,
       o.trains * (v.metrics ->> ('$.' || o.name || '_optimizer')) / 1073741824.0 AS optimizer,
       (v.metrics ->> ('$.' || o.name || '_activations')) / 1073741824.0 AS activations,
       (v.metrics ->> ('$.' || o.name || '_others')) / 1073741824.0 AS others, v.device, v.run_uid
  FROM v CROSS JOIN moment o
 WHERE v.is_good
 ORDER BY v.model, d_model, d_ff, layers, heads, vocab, v.batch, v.context, v."precision", v.ranks,
          v.row_order, v.wire <> 'own', v.wire, v.sharding <> 'none', v.sharding, v.updates, v.bucket_mb, o.at;
