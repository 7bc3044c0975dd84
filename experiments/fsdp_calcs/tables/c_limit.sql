-- sentence: Both passes are bound by compute up to the same N = 1 + B·W/C, for backward has twice the products and twice the messages: with B = {tokens}, C = {compute} TFLOP/s
--   and W = {link} GB/s up to {devices} devices, as data parallel is in backward.
-- experiment: fsdp_calcs
-- fills: c
-- columns: tokens|1|d|right; compute|1|.4g|right; link|1|.4g|right; devices|1|.4g|right
WITH t AS (
  SELECT v.*, (SELECT json_group_object(k.name, k.value) FROM metric k WHERE k.attempt_id = v.attempt_id) AS found,
         row_number() OVER (ORDER BY v.params ->> '$.tokens' <> 65536, v.params ->> '$.ranks' <> 8, v.params ->> '$.ranks' DESC, v.attempt_id DESC) AS place
    FROM v_newest v
   WHERE v.experiment = ?1 AND v.task = 'measure' AND v.status = 'ok' AND v.params ->> '$.element_bytes' = 2
)
SELECT params ->> '$.tokens' AS tokens, params ->> '$.compute_tflops' AS compute, params ->> '$.link_gbps' AS link, found ->> '$.forward_limit' AS devices, run_uid
  FROM t
 WHERE place = 1;
