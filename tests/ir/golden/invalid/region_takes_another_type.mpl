// error: VerifyError: the body 'do' takes (f64[]), got (i64[])
program "p" on {0, 1} (%0: i64[]@{0}) {
  simp.pcall_static(%0) {parties = {0}} do (%1: f64[]) {
    return
  }
  return
}
