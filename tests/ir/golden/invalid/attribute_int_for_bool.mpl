// error: VerifyError: attribute 'verify_uniform': expected bool, got int
program "p" on {0, 1} (%0: bool[]@{0, 1}) {
  simp.uniform_cond(%0) {verify_uniform = 1} then () {
    return
  } else () {
    return
  }
  return
}
