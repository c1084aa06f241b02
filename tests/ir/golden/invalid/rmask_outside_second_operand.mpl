// error: VerifyError: the parties {0} run it, but do not hold operand 1, i64[]@{1}
program "p" on {0, 1} (%0: i64[]@{0}, %1: i64[]@{1}) {
  simp.pcall_static(%0, %1) {parties = {0}} do (%2: i64[], %3: i64[]) {
    return
  }
  return
}
