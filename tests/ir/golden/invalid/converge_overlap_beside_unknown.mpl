// error: VerifyError: the masks overlap in {0}
program "p" on {0, 1} (%0: i64[]@{0}, %1: i64[]@?, %2: i64[]@{0}) {
  %3 = simp.converge(%0, %1, %2) : i64[]@?
  return %3
}
