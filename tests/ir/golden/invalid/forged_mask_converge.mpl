// error: VerifyError: its outputs are (i64[]@?), but it is written with (i64[]@{0})
program "p" on {0, 1} (%0: i64[]@{0}, %1: i64[]@?) {
  %2 = simp.converge(%0, %1) : i64[]@{0}
  return %2
}
