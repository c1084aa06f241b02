// error: VerifyError: the parties {2} are not among {0, 1}
program "p" on {0, 1} (%0: i64[]@{0}) {
  %1 = simp.shuffle_static(%0) {routing = [[2, 0]]} : i64[]@{2}
  return
}
