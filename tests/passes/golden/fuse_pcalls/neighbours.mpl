program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %3 = simp.pcall_static(%0) {parties = {0, 1}} do (%1: i64[]) {
    %2 = kit.add(%1, %1) : i64[] at "a.py:1"
    return %2
  } : i64[]@{0, 1} at "a.py:1"
  %4 = simp.constant() {parties = {0, 1}, value = dense<i64[]>[3]} : i64[]@{0, 1} at "a.py:2"
  %7 = simp.pcall_static(%0) {parties = {1}} do (%5: i64[]) {
    %6 = kit.mul(%5, %5) : i64[] at "a.py:3"
    return %6
  } : i64[]@{1} at "a.py:3"
  %11 = simp.pcall_static(%3, %4) {parties = {0, 1}} do (%8: i64[], %9: i64[]) {
    %10 = kit.mul(%8, %9) : i64[] at "a.py:4"
    return %10
  } : i64[]@{0, 1} at "a.py:4"
  return %7, %11
}

program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %1 = simp.constant() {parties = {0, 1}, value = dense<i64[]>[3]} : i64[]@{0, 1} at "a.py:2"
  %6 = simp.pcall_static(%0, %1) {parties = {0, 1}} do (%2: i64[], %3: i64[]) {
    %4 = kit.add(%2, %2) : i64[] at "a.py:1"
    %5 = kit.mul(%4, %3) : i64[] at "a.py:4"
    return %5
  } : i64[]@{0, 1} at "a.py:1"
  %9 = simp.pcall_static(%0) {parties = {1}} do (%7: i64[]) {
    %8 = kit.mul(%7, %7) : i64[] at "a.py:3"
    return %8
  } : i64[]@{1} at "a.py:3"
  return %9, %6
}
