-- sentence: {answer}
-- experiment: leaderboard_2026
-- command: syslab run leaderboard_2026 --preset two_gpus
-- fills: *
-- columns: answer|1|s|left
WITH t AS (
  SELECT v.*, v.params ->> '$.context' = 32768 AS whole,
         iif(v.n = 1, 'one measured step', printf('median of %d steps', v.n))
           || CASE v.protocol WHEN 'cs336' THEN ' after 5 of warm-up; the leaderboard''s script uses do_bench'
                              WHEN 'leaderboard_2026'
                                THEN ' by the leaderboard''s do_bench, 10 s of warm-up and 30 s of repeats'
                              ELSE iif(v.n = 1, '', ' by protocol `' || v.protocol || '`')
                                   || '; the leaderboard''s script uses do_bench' END AS how,
         row_number() OVER (ORDER BY v.is_good AND v.params ->> '$.context' = 32768 DESC,
                                     v.is_good DESC, v.params ->> '$.context' DESC,
                                     v.protocol = 'leaderboard_2026' DESC, v.time_ms, v.attempt_uid DESC) AS place
    FROM v_measured v
   WHERE v.experiment = ?1 AND v.role = 'sharded' AND v.params ->> '$.model' = '8B'
     AND v.params ->> '$.layers' = 0 AND v.gpu_name IS NOT NULL
     AND (v.is_good OR v.status = 'oom')
)
SELECT iif(is_good AND NOT whole,
           coalesce((SELECT printf('The leaderboard''s context of 32768 tokens does not fit (%s). ', message) FROM t
                      WHERE whole AND status = 'oom'
                      LIMIT 1), 'No step of 32768 tokens, as the leaderboard has, is stored. ')
             || printf('With the same model and FSDP on %d × %s (%.3g GiB each), batch %d of %d tokens in %s, '
                       || 'a step of forward, backward and AdamW takes %.3g s (slowest rank, %s). '
                       || 'Matrix products alone would take %.3g s at 989 TFLOP/s a GPU, '
                       || '%.3g s with those that this case repeats; a rank peaks at %.4g GiB.', world_size, gpu_name,
                       (SELECT max(facts ->> '$.gpu[0].memory_bytes') / 1073741824.0 FROM v_environment e
                         WHERE e.gpu_name = t.gpu_name),
                  params ->> '$.batch', params ->> '$.context', params ->> '$.precision', 1e-3 * time_ms, how,
                  (metrics ->> '$.floor_flops') / (world_size * 989e12),
                       (metrics ->> '$.segment_flops') / (world_size * 989e12),
                       (metrics ->> '$.peak_bytes') / 1073741824),
           iif(is_good,
           printf('%d × %s, batch %d of %d tokens, %s: '
                  || 'a step of forward, backward and AdamW takes %.3g s, %s the 10 s to beat (slowest rank, %s). '
                  || 'Its matrix products, recomputed ones included, would take %.3g s at 989 TFLOP/s a GPU.',
                  world_size, gpu_name, params ->> '$.batch', params ->> '$.context',
                  params ->> '$.precision', 1e-3 * time_ms, iif(time_ms < 1e4, 'below', 'above'), how,
                  (metrics ->> '$.segment_flops') / (world_size * 989e12)),
           printf('Not measured: the step of the 8B model, batch %d of %d tokens, does not fit %d × %s (%s).',
                  params ->> '$.batch', params ->> '$.context', world_size, gpu_name, message))) AS answer, run_uid
  FROM t
 WHERE place = 1;
