program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %1 = simp.constant() {parties = {0, 1}, value = dense<bool[]>[false]} : bool[]@{0, 1}
  %11, %12 = simp.uniform_cond(%1, %0) {verify_uniform = true} then (%2: i64[]@{0, 1}) {
    %3 = simp.constant() {parties = {0}, value = dense<i64[]>[1]} : i64[]@{0}
    return %2, %3
  } else (%4: i64[]@{0, 1}) {
    %5 = simp.constant() {parties = {0, 1}, value = dense<i64[]>[2]} : i64[]@{0, 1}
    %6 = simp.shuffle_static(%5) {routing = [[0, 1]]} : i64[]@{0}
    %10 = simp.pcall_static(%4, %5) {parties = {0, 1}} do (%7: i64[], %8: i64[]) {
      %9 = kit.add(%7, %8) : i64[] at "a.py:9"
      return %9
    } : i64[]@{0, 1}
    return %10, %6
  } : i64[]@{0, 1}, i64[]@{0}
  return %11, %12
}

program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %1 = simp.constant() {parties = {0, 1}, value = dense<bool[]>[false]} : bool[]@{0, 1}
  %2 = simp.constant() {parties = {0, 1}, value = dense<i64[]>[2]} : i64[]@{0, 1}
  %3 = simp.constant() {parties = {0}, value = dense<i64[]>[2]} : i64[]@{0}
  %7 = simp.pcall_static(%0, %2) {parties = {0, 1}} do (%4: i64[], %5: i64[]) {
    %6 = kit.add(%4, %5) : i64[] at "a.py:9"
    return %6
  } : i64[]@{0, 1}
  return %7, %3
}
