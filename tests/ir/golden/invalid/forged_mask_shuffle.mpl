// error: VerifyError: its outputs are (i64[]@{1}), but it is written with (i64[]@{0, 1})
program "p" on {0, 1} (%0: i64[]@{0}) {
  %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : i64[]@{0, 1}
  return %1
}
