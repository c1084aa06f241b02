program "while_loop" on {0, 1} (%0: i64[]@{0, 1}, %1: i64[]@{0, 1}) {
  %14 = simp.while_loop(%0, %1) {verify_uniform = true} cond (%2: i64[]@{0, 1}, %3: i64[]@{0, 1}) {
    %7 = simp.pcall_static(%2, %3) {parties = {0, 1}} do (%4: i64[], %5: i64[]) {
      %6 = toy.less(%4, %5) : bool[]
      return %6
    } : bool[]@{0, 1}
    return %7
  } body (%8: i64[]@{0, 1}, %9: i64[]@{0, 1}) {
    %13 = simp.pcall_static(%8, %9) {parties = {0, 1}} do (%10: i64[], %11: i64[]) {
      %12 = toy.add(%10, %11) : i64[]
      return %12
    } : i64[]@{0, 1}
    return %13
  } : i64[]@{0, 1}
  return %14
}
