-- title: Devices and shards that fit
-- caption: Calculated. `devices`: (a), fewest devices for the state and all activations of that many tokens; `shards`:
--   (b), smallest N with 1/N of the state and of half the activations, and the other half, on a device. GB are 10^9
--   bytes, GiB 2^30.
-- experiment: communication_accounting
-- columns: d_model?|1|d|right; d_ff?|1|d|right; blocks?|1|d|right; device_gb as device of (a)?|1|d|right;
--   shard_gb as device of (b)?|1|d|right; tokens|1|d|right; activations as activations [GB]|1|.5g|right;
--   filled as devices (GB)|1|.2f|right; devices as rounded up|1|d|right; filled_gib as devices (GiB)|1|.2f|right;
--   devices_gib as rounded up (GiB)|1|d|right; shards as shards (GB)|1|s|right; shards_gib as shards (GiB)|1|s|right;
--   status|1|status|left
-- note: A device of (b) holds M(N) = (S + A/2)/N + A/2, with S the state and A its activations. "impossible": A/2 alone
--   fills it.
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k
                WHERE k.attempt_id = v.attempt_id AND v.status <> 'error') AS found
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure'
)
SELECT params ->> '$.d_model' AS d_model, params ->> '$.d_ff' AS d_ff,
       params ->> '$.blocks' AS blocks, params ->> '$.device_gb' AS device_gb,
       params ->> '$.shard_gb' AS shard_gb, params ->> '$.tokens' AS tokens,
       (found ->> '$.activation_bytes') / 1e9 AS activations,
       found ->> '$.filled_decimal' AS filled, found ->> '$.devices_decimal' AS devices,
       found ->> '$.filled_binary' AS filled_gib,
       found ->> '$.devices_binary' AS devices_gib,
       iif(status = 'ok',
           iif((found ->> '$.shards_decimal') IS NULL, 'impossible', printf('%d', found ->> '$.shards_decimal')),
           NULL) AS shards,
       iif(status = 'ok',
           iif((found ->> '$.shards_binary') IS NULL, 'impossible', printf('%d', found ->> '$.shards_binary')),
           NULL) AS shards_gib, status, message, run_uid
  FROM t
 ORDER BY d_model, d_ff, blocks, device_gb, shard_gb, tokens;
