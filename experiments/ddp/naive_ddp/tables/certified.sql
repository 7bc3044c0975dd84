-- sentence: {model} in {precision}, {batch} rows of {context} tokens over {ranks} ranks ({backend}, {device}, protocol {protocol}, {implementation}), strategy {strategy}: a
--   network whose numbers are all exact, trained on these ranks, ends with the bits of one process on all rows, on every rank; and behind the
--   steps measured all ranks hold the same weights, bit for bit, and have moved the bytes that {all_reduces}.
-- experiment: naive_ddp
-- fills: *
-- columns: model|1|s|left; precision|1|s|left; batch|1|d|right; context|1|d|right; ranks|1|d|right; backend|1|code|left; device|1|s|left;
--   protocol|1|s|left; implementation|1|code|left; strategy|1|code|left; all_reduces|1|s|left
SELECT v.model, v."precision", v.batch, v.context, v.ranks, v.backend, v.device, v.protocol, v.implementation, v.strategy,
       iif(v.buckets = 1, 'one all-reduce makes', printf('%d all-reduces make', v.buckets)) AS all_reduces, v.run_uid
  FROM v_data_parallel v
 WHERE v.experiment = ?1 AND v.is_good AND v.ranks > 1
   AND v.ranks = (SELECT count(*) FROM check_result k
                   WHERE k.attempt_id = v.attempt_id AND k.name LIKE 'reference:certificate%' AND k.outcome = 'passed')
 ORDER BY v.model, v.batch, v.context, v."precision", v.ranks, v.row_order, v.bucket_mb;
