// error: VerifyError: unknown op 'nosuch.op'
program "p" on {0, 1} (%0: bool[]@{0, 1}) {
  simp.uniform_cond(%0) {verify_uniform = true} then () {
    return
  } else () {
    nosuch.op()
    return
  }
  return
}
