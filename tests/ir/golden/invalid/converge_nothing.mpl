// error: VerifyError: converge takes at least one operand
program "p" on {0, 1} () {
  %0 = simp.converge() : i64[]@{}
  return %0
}
