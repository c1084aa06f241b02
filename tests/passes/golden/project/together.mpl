program "p" on {0, 1, 2} (%0: i64[]@{0, 1, 2}) {
  %3 = simp.pcall_static(%0) {parties = {1}} do (%1: i64[]) {
    %2 = kit.add(%1, %1) : i64[] at "a.py:1"
    return %2
  } : i64[]@{1} at "a.py:1"
  %6 = simp.pcall_static(%0) {parties = {0, 1}} do (%4: i64[]) {
    %5 = parts.neighbour(%4) : i64[] at "a.py:2"
    return %5
  } : i64[]@{0, 1} at "a.py:2"
  return %3, %6
}

program "p" on {0} (%0: i64[]@{0}) {
  %3 = simp.pcall_static(%0) {parties = {0, 1}, place = 1} do (%1: i64[]) {
    %2 = parts.neighbour(%1) : i64[] at "a.py:2"
    return %2
  } : i64[]@{0} at "a.py:2"
  return %3
}

program "p" on {1} (%0: i64[]@{1}) {
  %3 = simp.pcall_static(%0) {parties = {1}} do (%1: i64[]) {
    %2 = kit.add(%1, %1) : i64[] at "a.py:1"
    return %2
  } : i64[]@{1} at "a.py:1"
  %6 = simp.pcall_static(%0) {parties = {0, 1}, place = 1} do (%4: i64[]) {
    %5 = parts.neighbour(%4) : i64[] at "a.py:2"
    return %5
  } : i64[]@{1} at "a.py:2"
  return %3, %6
}

program "p" on {2} (%0: i64[]@{2}) {
  return
}
