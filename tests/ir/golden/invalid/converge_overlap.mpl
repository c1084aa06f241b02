// error: VerifyError: the masks overlap in {1}
program "p" on {0, 1} (%0: i64[]@{0, 1}, %1: i64[]@{1}) {
  %2 = simp.converge(%0, %1) : i64[]@{0, 1}
  return %2
}
