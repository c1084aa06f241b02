// error: VerifyError: the parties {4} are not among {0, 1}
program "p" on {0, 1} (%0: i64[]@?) {
  %1 = simp.shuffle_static(%0) {routing = [[1, 4]]} : i64[]@{1}
  return
}
