-- title: FlashAttention-2 backward pass
-- caption: Median time of one call with its 95 % interval; `vs naive` is how many times as fast as the kernel that holds the score
--   matrix, on the same inputs.
-- experiment: flash_backward
-- columns: batch?|1|d|right; heads?|1|d|right; heads_kv?|1|d|right; seq|1|d|right; seq_k?|1|d|right; head_dim|1|d|right;
--   dtype|1|s|left; causal|1|flag|left; align?|1|s|left; @timed; tflops as rate|TFLOP/s|.3g|right;
--   vs_naive|×|ci(vs_naive_low, vs_naive_high)|right; @checked
-- note: The rate counts 10·B·H·pairs·D operations: five products, whatever a kernel computes again.
-- note: The reference computes in fp64 and has rows there only.
-- note: Worst error is where the error is largest beside its bound, over all outputs and all verified calls; checked is
--   the share of the outputs that was compared.
SELECT params ->> '$.batch' AS batch, params ->> '$.heads' AS heads, params ->> '$.heads_kv' AS heads_kv,
       params ->> '$.seq' AS seq, params ->> '$.seq_k' AS seq_k, params ->> '$.head_dim' AS head_dim,
       params ->> '$.dtype' AS dtype, params ->> '$.causal' AS causal, params ->> '$.align' AS align,
       implementation, time_ms, low_ms, high_ms, tflops, vs_naive, vs_naive_low, vs_naive_high, worst_error, bound, scratch, n, checked_percent, noise,
       protocol, device, status, message, run_uid
  FROM v_measured
 WHERE experiment = ?1 AND NOT (role IS 'reference' AND status = 'skipped')
 ORDER BY seq, seq_k, head_dim, dtype <> 'fp32', dtype, causal, align, batch, heads, heads_kv, row_order;
