// error: VerifyError: the parties {1} run it, but do not hold operand 0, i64[]@{0}
program "p" on {0, 1} (%0: i64[]@{0}) {
  %1 = simp.pcall_static(%0) {parties = {0, 1}} do (%2: i64[]) {
    return %2
  } : i64[]@{0, 1}
  return %1
}
