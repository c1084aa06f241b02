program "p" on {0, 1} (%0: i64[]@{0, 1}, %1: i64[]@{0, 1}) {
  %7, %8 = simp.pcall_static(%0, %1) {parties = {0, 1}} do (%2: i64[], %3: i64[]) {
    %4 = kit.add(%2, %2) : i64[] at "a.py:1"
    %5 = kit.mul(%3, %3) : i64[] at "a.py:2"
    %6 = parts.fresh() : f64[]
    return %4, %5
  } : i64[]@{0, 1}, i64[]@{0, 1} at "a.py:4"
  %9 = simp.shuffle_static(%8) {routing = [[0, 1]]} : i64[]@{0}
  %11 = simp.pcall_static() {parties = {0}} do () {
    %10 = parts.fresh() : f64[]
    return %10
  } : f64[]@{0}
  return %7
}

program "p" on {0, 1} (%0: i64[]@{0, 1}, %1: i64[]@{0, 1}) {
  %4 = simp.pcall_static(%0) {parties = {0, 1}} do (%2: i64[]) {
    %3 = kit.add(%2, %2) : i64[] at "a.py:1"
    return %3
  } : i64[]@{0, 1} at "a.py:4"
  return %4
}
