// error: VerifyError: the predicate is held by {}
program "p" on {0, 1} (%0: bool[]@{}) {
  simp.uniform_cond(%0) {verify_uniform = true} then () {
    return
  } else () {
    return
  }
  return
}
