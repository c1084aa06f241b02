program "p" on {0, 1} (%0: bool[]@{0, 1}, %1: i64[]@{0}, %2: i64[]@{0, 1}, %3: i64[]@?) {
  %6, %7 = func.call(%1, %2) {name = "f"} body (%4: i64[]@{0}, %5: i64[]@{0, 1}) {
    return %5, %4
  } : i64[]@{0, 1}, i64[]@{0}
  %13, %14 = simp.uniform_cond(%0, %6, %7) {verify_uniform = true} then (%8: i64[]@{0, 1}, %9: i64[]@{0}) {
    return %8, %9
  } else (%10: i64[]@{0, 1}, %11: i64[]@{0}) {
    %12 = simp.shuffle_static(%10) {routing = [[0, 1]]} : i64[]@{0}
    return %10, %12
  } : i64[]@{0, 1}, i64[]@{0}
  %16 = simp.pcall_static(%13) {parties = {0, 1}} do (%15: i64[]) {
    return %15
  } : i64[]@{0, 1}
  %18 = simp.pcall_static(%13) {parties = {1}} do (%17: i64[]) {
    return %17
  } : i64[]@{1}
  %20 = simp.pcall_static(%3) {parties = {1}} do (%19: i64[]) {
    return %19
  } : i64[]@{1}
  %22 = simp.pcall_dynamic(%3) do (%21: i64[]) {
    return %21
  } : i64[]@?
  %25 = simp.pcall_dynamic(%3, %1) do (%23: i64[], %24: i64[]) {
    return %23
  } : i64[]@?
  %26 = simp.shuffle_static(%16) {routing = [[0, 0], [1, 1]]} : i64[]@{0, 1}
  return %6, %7, %14, %16, %18, %20, %22, %25, %26
}

program "p" on {0, 1} (%0: bool[]@{0, 1}, %1: i64[]@{0}, %2: i64[]@{0, 1}, %3: i64[]@?) {
  %6, %7 = func.call(%1, %2) {name = "f"} body (%4: i64[]@{0}, %5: i64[]@{0, 1}) {
    return %5, %4
  } : i64[]@{0, 1}, i64[]@{0}
  %13, %14 = simp.uniform_cond(%0, %2, %1) {verify_uniform = true} then (%8: i64[]@{0, 1}, %9: i64[]@{0}) {
    return %8, %9
  } else (%10: i64[]@{0, 1}, %11: i64[]@{0}) {
    %12 = simp.shuffle_static(%10) {routing = [[0, 1]]} : i64[]@{0}
    return %10, %12
  } : i64[]@{0, 1}, i64[]@{0}
  %16 = simp.pcall_static(%2) {parties = {0, 1}} do (%15: i64[]) {
    return %15
  } : i64[]@{0, 1}
  %18 = simp.pcall_static(%2) {parties = {1}} do (%17: i64[]) {
    return %17
  } : i64[]@{1}
  %20 = simp.pcall_static(%3) {parties = {1}} do (%19: i64[]) {
    return %19
  } : i64[]@{1}
  %22 = simp.pcall_dynamic(%3) do (%21: i64[]) {
    return %21
  } : i64[]@?
  %25 = simp.pcall_dynamic(%3, %1) do (%23: i64[], %24: i64[]) {
    return %23
  } : i64[]@?
  return %2, %1, %14, %2, %18, %20, %3, %25, %2
}
