// error: VerifyError: at local level a value has a BaseType: i64[]@{0}
program "p" on {0, 1} (%0: i64[]@{0}) {
  simp.pcall_static(%0) {parties = {0}} do (%1: i64[]@{0}) {
    return
  }
  return
}
