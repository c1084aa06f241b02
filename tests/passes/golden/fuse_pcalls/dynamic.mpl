program "p" on {0, 1} (%0: i64[]@?, %1: i64[]@?) {
  %5 = simp.pcall_dynamic(%0, %1) do (%2: i64[], %3: i64[]) {
    %4 = kit.add(%2, %3) : i64[]
    return %4
  } : i64[]@?
  %9 = simp.pcall_dynamic(%0, %5) do (%6: i64[], %7: i64[]) {
    %8 = kit.mul(%6, %7) : i64[]
    return %8
  } : i64[]@?
  %13 = simp.pcall_dynamic(%1, %0) do (%10: i64[], %11: i64[]) {
    %12 = kit.mul(%10, %11) : i64[]
    return %12
  } : i64[]@?
  %16 = simp.pcall_dynamic(%0) do (%14: i64[]) {
    %15 = kit.mul(%14, %14) : i64[]
    return %15
  } : i64[]@?
  %19 = simp.pcall_static(%0) {parties = {0}} do (%17: i64[]) {
    %18 = kit.mul(%17, %17) : i64[]
    return %18
  } : i64[]@{0}
  %22 = simp.pcall_static(%19) {parties = {0}} do (%20: i64[]) {
    %21 = kit.mul(%20, %20) : i64[]
    return %21
  } : i64[]@{0}
  return %9, %13, %16, %22
}

program "p" on {0, 1} (%0: i64[]@?, %1: i64[]@?) {
  %7, %8 = simp.pcall_dynamic(%0, %1) do (%2: i64[], %3: i64[]) {
    %4 = kit.add(%2, %3) : i64[]
    %5 = kit.mul(%2, %4) : i64[]
    %6 = kit.mul(%3, %2) : i64[]
    return %5, %6
  } : i64[]@?, i64[]@?
  %11 = simp.pcall_dynamic(%0) do (%9: i64[]) {
    %10 = kit.mul(%9, %9) : i64[]
    return %10
  } : i64[]@?
  %14 = simp.pcall_static(%0) {parties = {0}} do (%12: i64[]) {
    %13 = kit.mul(%12, %12) : i64[]
    return %13
  } : i64[]@{0}
  %17 = simp.pcall_static(%14) {parties = {0}} do (%15: i64[]) {
    %16 = kit.mul(%15, %15) : i64[]
    return %16
  } : i64[]@{0}
  return %7, %8, %11, %17
}
