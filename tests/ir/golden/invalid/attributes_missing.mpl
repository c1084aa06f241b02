// error: VerifyError: attributes missing: value, parties
program "p" on {0, 1} () {
  %0 = simp.constant() : i64[]@{0}
  return
}
