// error: VerifyError: the predicate is held by {0}, but {0, 1} take the branch together
program "p" on {0, 1} (%0: bool[]@{0}) {
  simp.uniform_cond(%0) {verify_uniform = true} then () {
    return
  } else () {
    return
  }
  return
}
