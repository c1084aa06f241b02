// error: VerifyError: i64[]@{0, 2} names parties outside of {0, 1}
program "p" on {0, 1} (%0: i64[]@{0, 2}) {
  return
}
