// error: VerifyError: simp.shuffle_static: 
program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %1 = simp.shuffle_static(%0) {routing = [[1, 9223372036854775807]]} : i64[]@{1}
  return
}
