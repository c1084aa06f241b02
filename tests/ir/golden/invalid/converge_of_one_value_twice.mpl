// error: VerifyError: the masks overlap in {0}
program "p" on {0, 1} (%0: i64[]@{0}) {
  %1 = simp.converge(%0, %0) : i64[]@{0}
  return %1
}
