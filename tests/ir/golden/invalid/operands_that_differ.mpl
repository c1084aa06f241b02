// error: VerifyError: expected two of one type, got i64[] and f64[]
program "p" on {0, 1} (%0: i64[]@{0}, %1: f64[]@{0}) {
  simp.pcall_static(%0, %1) {parties = {0}} do (%2: i64[], %3: f64[]) {
    %4 = toy.add(%2, %3) : i64[]
    return
  }
  return
}
