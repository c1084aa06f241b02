// error: VerifyError: a party receives once, got the targets [1, 1]
program "p" on {0, 1} (%0: i64[]@{0, 1}) {
  %1 = simp.shuffle_static(%0) {routing = [[1, 0], [1, 1]]} : i64[]@{1}
  return
}
