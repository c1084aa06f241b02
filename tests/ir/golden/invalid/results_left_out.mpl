// error: VerifyError: but it is written with ()
program "p" on {0, 1} (%0: i64[]@{0}) {
  simp.converge(%0)
  return
}
