program "p" on {0, 1} (%0: bool[]@{0, 1}, %1: i64[]@{0}) {
  %7, %8 = simp.uniform_cond(%0, %1) {verify_uniform = true} then (%2: i64[]@{0}) {
    %3 = simp.shuffle_static(%2) {routing = [[1, 0]]} : i64[]@{1}
    %4 = simp.shuffle_static(%2) {routing = [[1, 0]]} : i64[]@{1}
    return %3, %4
  } else (%5: i64[]@{0}) {
    %6 = simp.shuffle_static(%5) {routing = [[1, 0]]} : i64[]@{1}
    return %6, %6
  } : i64[]@{1}, i64[]@{1}
  %9 = simp.shuffle_static(%1) {routing = [[1, 0]]} : i64[]@{1}
  return %7, %8, %9
}

program "p" on {0, 1} (%0: bool[]@{0, 1}, %1: i64[]@{0}) {
  %6, %7 = simp.uniform_cond(%0, %1) {verify_uniform = true} then (%2: i64[]@{0}) {
    %3 = simp.shuffle_static(%2) {routing = [[1, 0]]} : i64[]@{1}
    return %3, %3
  } else (%4: i64[]@{0}) {
    %5 = simp.shuffle_static(%4) {routing = [[1, 0]]} : i64[]@{1}
    return %5, %5
  } : i64[]@{1}, i64[]@{1}
  %8 = simp.shuffle_static(%1) {routing = [[1, 0]]} : i64[]@{1}
  return %6, %7, %8
}
