program "p" on {0, 1} (%0: i64[]@?, %1: i64[]@{0}) {
  %4 = simp.pcall_dynamic(%0, %1) do (%2: i64[], %3: i64[]) {
    return %3
  } : i64[]@?
  return %4
}

program "p" on {0, 1} (%0: i64[]@?, %1: i64[]@{0}) {
  %4 = simp.pcall_dynamic(%0, %1) do (%2: i64[], %3: i64[]) {
    return %3
  } : i64[]@?
  return %4
}
