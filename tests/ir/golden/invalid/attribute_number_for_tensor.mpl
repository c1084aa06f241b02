// error: VerifyError: attribute 'value': expected ndarray, got int
program "p" on {0, 1} () {
  %0 = simp.constant() {parties = {0}, value = 1} : i64[]@{0}
  return
}
