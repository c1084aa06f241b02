// error: VerifyError: uniform_cond takes a predicate
program "p" on {0, 1} () {
  simp.uniform_cond() {verify_uniform = true} then () {
    return
  } else () {
    return
  }
  return
}
