program "p" on {0, 1} (%0: bool[]@{0, 1}, %1: i64[]@{0, 1}) {
  %4, %5 = simp.pcall_static(%1) {parties = {0}} do (%2: i64[]) {
    %3 = parts.note(%2) : i64[]
    return %3, %2
  } : i64[]@{0}, i64[]@{0}
  %12 = simp.uniform_cond(%0, %1) {verify_uniform = true} then (%6: i64[]@{0, 1}) {
    %9 = simp.pcall_static(%6) {parties = {0, 1}} do (%7: i64[]) {
      %8 = parts.note(%7) : i64[]
      return %8
    } : i64[]@{0, 1}
    return %9
  } else (%10: i64[]@{0, 1}) {
    %11 = simp.shuffle_static(%10) {routing = [[0, 1], [1, 0]]} : i64[]@{0, 1}
    return %11
  } : i64[]@{0, 1}
  return
}

program "p" on {0, 1} (%0: bool[]@{0, 1}, %1: i64[]@{0, 1}) {
  simp.pcall_static(%1) {parties = {0}} do (%2: i64[]) {
    %3 = parts.note(%2) : i64[]
    return
  }
  simp.uniform_cond(%0, %1) {verify_uniform = true} then (%4: i64[]@{0, 1}) {
    simp.pcall_static(%4) {parties = {0, 1}} do (%5: i64[]) {
      %6 = parts.note(%5) : i64[]
      return
    }
    return
  } else (%7: i64[]@{0, 1}) {
    return
  }
  return
}
