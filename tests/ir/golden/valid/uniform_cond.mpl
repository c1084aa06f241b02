program "uniform_cond" on {0, 1} (%0: bool[]@{0, 1}, %1: i64[]@{0}, %2: i64[]@{1}, %3: bool[]@?) {
  %11 = simp.uniform_cond(%0, %1, %2) {verify_uniform = true} then (%4: i64[]@{0}, %5: i64[]@{1}) {
    %8 = simp.pcall_static(%4) {parties = {0}} do (%6: i64[]) {
      %7 = toy.add(%6, %6) : i64[]
      return %7
    } : i64[]@{0}
    return %8
  } else (%9: i64[]@{0}, %10: i64[]@{1}) {
    return %9
  } : i64[]@{0}
  simp.uniform_cond(%3) {verify_uniform = false} then () {
    return
  } else () {
    return
  }
  return %11
}
