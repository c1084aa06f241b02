// error: VerifyError: the parties {7} are not among {0, 1}
program "p" on {0, 1} () {
  %0 = simp.constant() {parties = {0, 7}, value = dense<i64[]>[1]} : i64[]@{0, 7}
  return
}
