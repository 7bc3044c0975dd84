-- sentence: With the state and half of the activations sharded over N devices, each holds (S + A/2)/N + A/2, with
--   S = {state} GB and A = {token} · n MB for its own n tokens. That is below {shard} GB from N = {shards} without
--   activations ({shards_gib} with GiB); {tokens} tokens a device need N = {more}, and from {without} tokens half of
--   the activations alone exceed it.
-- experiment: communication_accounting
-- fills: b
-- columns: state|1|s|right; token|1|s|right; shard|1|d|right; shards|1|d|right; shards_gib|1|d|right; tokens|1|s|right;
--   more|1|d|right; without|1|s|right
WITH t AS (
  SELECT v.*, json_remove(v.params, '$.tokens') AS point, v.params ->> '$.tokens' AS tokens,
         (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status = 'ok'
)
SELECT printf('%,.0f', (z.found ->> '$.state_bytes') / 1e9) AS state,
       printf('%.4g', (z.found ->> '$.token_bytes') / 1e6) AS token, z.params ->> '$.shard_gb' AS shard,
       z.found ->> '$.shards_decimal' AS shards,
       z.found ->> '$.shards_binary' AS shards_gib, printf('%,d', max(n.tokens)) AS tokens,
       n.found ->> '$.shards_decimal' AS more,
       printf('%,d', ceil(z.found ->> '$.tokens_without_room')) AS without, max(z.run_uid, n.run_uid) AS run_uid
  FROM t z
  JOIN t n ON n.point = z.point AND n.tokens > 0 AND n.found ->> '$.shards_decimal' IS NOT NULL
 WHERE z.tokens = 0
 GROUP BY z.point
 ORDER BY z.point;
