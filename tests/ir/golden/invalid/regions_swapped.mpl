// error: VerifyError: expected the regions ['then', 'else'], got ['else', 'then']
program "p" on {0, 1} (%0: bool[]@{0, 1}) {
  simp.uniform_cond(%0) {verify_uniform = true} else () {
    return
  } then () {
    return
  }
  return
}
