// error: VerifyError: its outputs are (i64[]@{0}), but it is written with (i64[]@{1})
program "p" on {0, 1} () {
  %0 = simp.constant() {parties = {0}, value = dense<i64[]>[1]} : i64[]@{1}
  return %0
}
