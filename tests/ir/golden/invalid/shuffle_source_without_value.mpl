// error: VerifyError: the sources are {1}, but the value is i64[]@{0}
program "p" on {0, 1} (%0: i64[]@{0}) {
  %1 = simp.shuffle_static(%0) {routing = [[1, 1]]} : i64[]@{1}
  return
}
