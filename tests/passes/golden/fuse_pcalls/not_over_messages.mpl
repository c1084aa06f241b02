program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %3 = simp.pcall_static(%0) {parties = {0, 1}} do (%1: i64[]) {
    %2 = kit.add(%1, %1) : i64[]
    return %2
  } : i64[]@{0, 1}
  %4 = simp.shuffle_static(%3) {routing = [[0, 1], [1, 0]]} : i64[]@{0, 1}
  %7 = simp.pcall_static(%0) {parties = {0, 1}} do (%5: i64[]) {
    %6 = kit.mul(%5, %5) : i64[]
    return %6
  } : i64[]@{0, 1}
  return %3, %4, %7
}

program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %3 = simp.pcall_static(%0) {parties = {0, 1}} do (%1: i64[]) {
    %2 = kit.add(%1, %1) : i64[]
    return %2
  } : i64[]@{0, 1}
  %4 = simp.shuffle_static(%3) {routing = [[0, 1], [1, 0]]} : i64[]@{0, 1}
  %7 = simp.pcall_static(%0) {parties = {0, 1}} do (%5: i64[]) {
    %6 = kit.mul(%5, %5) : i64[]
    return %6
  } : i64[]@{0, 1}
  return %3, %4, %7
}
