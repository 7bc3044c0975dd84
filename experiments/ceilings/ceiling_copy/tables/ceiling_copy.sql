-- title: The ceiling of memory: copying
-- caption: Median time of one copy with its 95 % interval. The rate counts bytes read and bytes written; `side / cache` is one
--   side over the last-level cache, and from 4 on the rate is memory's.
-- experiment: ceiling_copy
-- columns: bytes|B|d|right; side_over_cache as side / cache|1|.2g|right; @timed; gbps as rate|GB/s|.3g|right;
--   vs_peer as vs memcpy|×|ci(vs_peer_low, vs_peer_high)|right; n|1|d|right; noise?|1|s|left; protocol?|1|s|left; device?|1|s|left;
--   status|1|status|left
-- note: A store that misses the caches reads its line first unless it goes round them; that reading is not counted (STREAM's
--   convention), so `streaming` may show up to 1.5 times the rate of a copy that is as busy.
SELECT params ->> '$.bytes' AS bytes,
       (params ->> '$.bytes') / (facts ->> '$.last_level_cache_bytes' * 1.0) AS side_over_cache,
       implementation, time_ms, low_ms, high_ms, gbps, vs_peer, vs_peer_low, vs_peer_high, n, noise, protocol, device, status, message, run_uid
  FROM v_measured
 WHERE experiment = ?1
 ORDER BY bytes, row_order;
