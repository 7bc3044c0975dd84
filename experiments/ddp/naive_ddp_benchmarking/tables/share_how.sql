-- sentence: Over {n} steps after 5 of warm-up, the slowest rank of each; phases by events, communication from the end of backward to that of
--   the last all-reduce.{again}
-- experiment: naive_ddp_benchmarking
-- fills: *
-- columns: n|1|d|right; again|1|s|left
SELECT max(n) AS n,
       iif(EXISTS (SELECT 1 FROM v_data_parallel a WHERE a.experiment IN ('minimal_ddp_flat_benchmarking', 'ddp_overlap_individual_parameters_benchmarking') AND a.strategy = 'naive'
                      AND a.is_good AND a.backend = 'nccl'), ' Later problems time it anew.', '') AS again, max(run_uid) AS run_uid
  FROM v_data_parallel
 WHERE experiment = ?1 AND strategy = 'naive' AND is_good AND backend = 'nccl'
HAVING count(*) > 0;
