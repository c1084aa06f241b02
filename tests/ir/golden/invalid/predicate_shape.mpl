// error: VerifyError: a predicate is a bool scalar, got bool[1]@{0, 1}
program "p" on {0, 1} (%0: bool[1]@{0, 1}) {
  simp.uniform_cond(%0) {verify_uniform = true} then () {
    return
  } else () {
    return
  }
  return
}
