// What `log EXPERIMENT` asks the database.
#pragma once

namespace syslab::cli {

// One attempt's median each, of an implementation of ours by the program's revision, of anybody else's by its digest.
inline constexpr const char* kTimes = R"(
SELECT h.comparability_key, coalesce(h.gpu_name, h.cpu_model, '') AS machine,
       h.params, coalesce(h.case_text, ''), h.implementation, h.is_mine, h.world_size, h.protocol,
       CASE WHEN h.is_mine THEN h.implementation_digest ELSE h.git_sha || CASE WHEN h.git_dirty THEN '+changes' ELSE '' END END,
       h.value,
       (SELECT f.facts ->> '$.code.digest' FROM attempt a JOIN attempt_facts f ON f.attempt_id = a.id
         WHERE a.uid = h.attempt_uid),
       h.measured_here, coalesce(r.protocol ->> '$.name', ''), coalesce(r.protocol ->> '$.data', 'normal'),
       h.version, coalesce(h.author, '')
  FROM v_history h
  JOIN run r ON r.uid = h.run_uid
 WHERE h.experiment = ?1 AND h.metric = 'time' AND h.value > 0 AND (h.world_size = 1 OR h.rank = -1)
       AND r.protocol ->> '$.name' <> 'paired'
 ORDER BY h.run_order, h.attempt_uid)";

inline constexpr const char* kComparisons = R"(
SELECT comparability_key, side_a ->> '$.impl', side_a ->> '$.params', side_b ->> '$.params', side_b ->> '$.impl',
       coalesce(side_a ->> '$.build.facts.git_sha', git_sha)
         || iif(coalesce(side_a ->> '$.build.facts.git_dirty', git_dirty), '+changes', ''),
       coalesce(side_b ->> '$.build.facts.git_sha', git_sha)
         || iif(coalesce(side_b ->> '$.build.facts.git_dirty', git_dirty), '+changes', ''),
       verdict, change, change_low, change_high, coalesce(reason, ''),
       coalesce(side_a ->> '$.world_size', 1), coalesce(side_b ->> '$.world_size', 1),
       coalesce(r.protocol ->> '$.of.name', ''), coalesce(r.protocol ->> '$.data', 'normal'), measured_here,
       coalesce((SELECT max(t.version) FROM comparison_attempt x JOIN v_attempt t ON t.attempt_id = x.attempt_id
                  WHERE x.comparison_id = c.comparison_id), ''),
       coalesce((SELECT max(t.author) FROM comparison_attempt x JOIN v_attempt t ON t.attempt_id = x.attempt_id
                  WHERE x.comparison_id = c.comparison_id), '')
  FROM v_comparison c JOIN run r ON r.id = c.run_id
 WHERE experiment = ?1 AND mode = 'interleaved' AND is_last
 ORDER BY at)";

}  // namespace syslab::cli
