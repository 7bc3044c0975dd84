-- title: Model state
-- caption: Calculated: weights, gradients and Adam's moments in fp32, and activations saved per token, the inputs of
--   both layers of every block in bf16.
-- about devices: `devices`: the state in devices of that size, not rounded.
-- experiment: communication_accounting
-- columns: d_model?|1|d|right; d_ff?|1|d|right; blocks?|1|d|right; part|1|s|left; bytes|B|s|right;
--   gb as GB|1|.2f|right; gib as GiB|1|.2f|right; devices|1|s|right; status|1|status|left
-- note: Parameters: 2·D·F a block. State: 4, 4 and 8 bytes a parameter. A token: 2·(D + F) bytes a block.
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k
                WHERE k.attempt_id = v.attempt_id AND v.status <> 'error') AS found,
         row_number() OVER (PARTITION BY json_remove(v.params, '$.tokens')
                                ORDER BY v.status <> 'ok', v.params ->> '$.tokens') AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
),
parts(place, part, name) AS (
  VALUES (1, 'weights', 'weight_bytes'), (2, 'gradients', 'gradient_bytes'),
         (3, 'moments', 'moment_bytes'), (4, 'all three', 'state_bytes'),
         (5, 'activations of a token', 'token_bytes')
)
SELECT params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff, params ->> '$.blocks' AS blocks, part,
       printf('%,d', found ->> name) AS bytes, (found ->> name) / 1e9 AS gb, (found ->> name) / 1073741824 AS gib,
       iif(name = 'state_bytes',
           printf('%.2f of %d GB, %.2f of %d GiB', (found ->> name) / 1e9 / (params ->> '$.device_gb'),
                  params ->> '$.device_gb', (found ->> name) / 1073741824 / (params ->> '$.device_gb'),
                  params ->> '$.device_gb'), '–') AS devices,
       status, message, run_uid
  FROM t CROSS JOIN parts
 WHERE t.place = 1
 ORDER BY d_model, d_ff, blocks, t.attempt_id, parts.place;
