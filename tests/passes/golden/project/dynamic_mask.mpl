program "p" on {0, 1} (%0: i64[]@{0}, %1: i64[]@?, %2: bool[]@?) {
  %6 = simp.pcall_dynamic(%0, %1) do (%3: i64[], %4: i64[]) {
    %5 = kit.add(%3, %4) : i64[] at "a.py:1"
    return %5
  } : i64[]@? at "a.py:1"
  %8 = simp.pcall_static(%6) {parties = {0, 1}} do (%7: i64[]) {
    return %7
  } : i64[]@{0, 1} at "a.py:2"
  %13 = simp.uniform_cond(%2, %1, %6) {verify_uniform = true} then (%9: i64[]@?, %10: i64[]@?) {
    return %9
  } else (%11: i64[]@?, %12: i64[]@?) {
    return %12
  } : i64[]@? at "a.py:3"
  return %8, %13, %6
}

program "p" on {0} (%0: i64[]@{0}, %1: i64[]@?, %2: bool[]@?) {
  %6 = simp.pcall_dynamic(%0, %1) {place = 0} do (%3: i64[], %4: i64[]) {
    %5 = kit.add(%3, %4) : i64[] at "a.py:1"
    return %5
  } : i64[]@? at "a.py:1"
  %8 = simp.pcall_static(%6) {parties = {0, 1}, place = 1} do (%7: i64[]) {
    return %7
  } : i64[]@{0} at "a.py:2"
  %13 = simp.uniform_cond(%2, %1, %6) {place = 2, verify_uniform = true} then (%9: i64[]@?, %10: i64[]@?) {
    return %9
  } else (%11: i64[]@?, %12: i64[]@?) {
    return %12
  } : i64[]@? at "a.py:3"
  return %8, %13, %6
}

program "p" on {1} (%0: i64[]@?, %1: bool[]@?) {
  %2 = simp.nothing() {kind = i64[]} : i64[]@?
  %4 = simp.pcall_static(%2) {parties = {0, 1}, place = 1} do (%3: i64[]) {
    return %3
  } : i64[]@{1} at "a.py:2"
  %9 = simp.uniform_cond(%1, %0, %2) {place = 2, verify_uniform = true} then (%5: i64[]@?, %6: i64[]@?) {
    return %5
  } else (%7: i64[]@?, %8: i64[]@?) {
    return %8
  } : i64[]@? at "a.py:3"
  return %4, %9, %2
}
