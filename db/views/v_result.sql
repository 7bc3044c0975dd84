-- Everything joined: a row a metric; attempts without metrics keep one row with NULLs, so failures stay in sight.
CREATE VIEW v_result AS
SELECT t.*, m.name AS metric, m.unit, m.rank, m.value, m.ci_low, m.ci_high, m.n, m.note
  FROM v_attempt t
  LEFT JOIN metric m ON m.attempt_id = t.attempt_id;
