program "p" on {0, 1} (%0: bool[]@{0, 1}, %1: i64[]@{0}, %2: i64[]@{1}, %3: i64[]@{1}) {
  %17, %18, %19 = simp.while_loop(%0, %1, %2, %3) {verify_uniform = true} cond (%4: bool[]@{0, 1}, %5: i64[]@{0}, %6: i64[]@{1}, %7: i64[]@{1}) {
    return %4
  } body (%8: bool[]@{0, 1}, %9: i64[]@{0}, %10: i64[]@{1}, %11: i64[]@{1}) {
    %15 = simp.pcall_static(%10, %11) {parties = {1}} do (%12: i64[], %13: i64[]) {
      %14 = kit.add(%12, %13) : i64[]
      return %14
    } : i64[]@{1}
    %16 = simp.shuffle_static(%15) {routing = [[0, 1]]} : i64[]@{0}
    return %8, %16, %15
  } : bool[]@{0, 1}, i64[]@{0}, i64[]@{1}
  return %18, %19
}

program "p" on {0} (%0: bool[]@{0}, %1: i64[]@{0}) {
  %7, %8 = simp.while_loop(%0, %1) {place = 0, verify_uniform = true} cond (%2: bool[]@{0}, %3: i64[]@{0}) {
    return %2
  } body (%4: bool[]@{0}, %5: i64[]@{0}) {
    %6 = simp.recv() {kind = i64[], place = 1, source = 1} : i64[]@{0}
    return %4, %6
  } : bool[]@{0}, i64[]@{0}
  return %8
}

program "p" on {1} (%0: bool[]@{1}, %1: i64[]@{1}, %2: i64[]@{1}) {
  %13, %14 = simp.while_loop(%0, %1, %2) {place = 0, verify_uniform = true} cond (%3: bool[]@{1}, %4: i64[]@{1}, %5: i64[]@{1}) {
    return %3
  } body (%6: bool[]@{1}, %7: i64[]@{1}, %8: i64[]@{1}) {
    %12 = simp.pcall_static(%7, %8) {parties = {1}} do (%9: i64[], %10: i64[]) {
      %11 = kit.add(%9, %10) : i64[]
      return %11
    } : i64[]@{1}
    simp.send(%12) {place = 1, to = {0}}
    return %6, %12
  } : bool[]@{1}, i64[]@{1}
  return %14
}
