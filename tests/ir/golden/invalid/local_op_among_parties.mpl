// error: VerifyError: it stands at local level, not at party level
program "p" on {0, 1} () {
  %0 = toy.rank() : i64[]@{0}
  return %0
}
